"""From covariates to rankings."""
