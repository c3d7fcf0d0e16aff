"""Settings for all tests."""

from hypothesis import settings

# The first call of a compiled function takes as long as compiling it; the machines that run this are shared.
settings.register_profile("rankernel", deadline=None)
settings.load_profile("rankernel")
