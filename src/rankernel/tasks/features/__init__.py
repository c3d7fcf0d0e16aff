"""From Gram matrices to answers: features and maps of rankings."""
