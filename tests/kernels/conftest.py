"""Kernels are tested compiled, and once more as plain Python on smaller sizes."""

import numba
import pytest


@pytest.fixture(scope="session")
def compiled():
    """Whether kernels run compiled."""
    return not numba.config.DISABLE_JIT
