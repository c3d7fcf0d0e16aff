"""Learning from kernels on rankings: clustering, maps, features, regression, and adapters to other libraries."""
