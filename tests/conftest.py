"""Settings for all tests."""

import pytest
from hypothesis import settings

# The first call of a compiled function takes as long as compiling it; the machines that run this are shared.
settings.register_profile("rankernel", deadline=None)
settings.load_profile("rankernel")


@pytest.fixture
def errors_in_a_moment(monkeypatch):
    """Hardly measure what estimated values add to a statistic: most of the time of tests that do not look at it."""
    monkeypatch.setattr("rankernel.tasks.tests._voters.REDRAWN", 1)
    monkeypatch.setattr("rankernel.tasks.tests.goodness_of_fit.N_REDRAWN", 2)
