"""From Gram matrices to answers: whether groups differ."""
