"""Another package's tests, as plain Python: compiling them takes half a minute, calling them a moment."""

import warnings

import pytest


def hyppo_hsic(monkeypatch):
    """Return hyppo's biased HSIC of two matrices, or skip where hyppo is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        independence = pytest.importorskip("hyppo.independence", reason="hyppo is not installed")
    dcorr = pytest.importorskip("hyppo.independence.dcorr")
    for name, function in list(vars(dcorr).items()):
        if hasattr(function, "py_func"):
            monkeypatch.setattr(dcorr, name, function.py_func)
    return independence.Hsic(compute_kernel=None, bias=True)


def hyppo_ksample(monkeypatch):
    """Return hyppo's module of k-sample tests, or skip where hyppo is not installed."""
    hyppo_hsic(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("hyppo.ksample", reason="hyppo is not installed")
