"""Models are tested without rendering the figures of their reports."""

import pytest

from sketching import sketched


@pytest.fixture(scope="package", autouse=True)
def _sketched():
    with sketched():
        yield
