"""From Gram matrices to answers: clusters of rankings."""
