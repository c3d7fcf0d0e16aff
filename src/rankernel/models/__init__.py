"""Models of rankings, and consensus rankings."""
