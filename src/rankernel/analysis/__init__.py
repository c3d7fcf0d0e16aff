"""What the report and the commands share: a source, its clusters, a map, comparisons; so that a page only draws."""
