"""Kernels are tested compiled, and once more as plain Python on smaller sizes."""

import numba
import pytest

from surelabel._kernels import compiling


@pytest.fixture(scope="session")
def compiled():
    """Whether kernels run compiled."""
    return not numba.config.DISABLE_JIT


@pytest.fixture(scope="package", autouse=True)
def _compiles_at_once():
    """Compile kernels even for the smallest job."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling.few, "steps", 0)
        yield
