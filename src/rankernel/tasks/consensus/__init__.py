"""From rankings to one that speaks for them."""
