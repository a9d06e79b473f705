"""A service that the tests of a module share."""

import pytest

from service_running import make_bundle, serving


@pytest.fixture(scope="session")
def bundle():
    return make_bundle()


@pytest.fixture(scope="module")
def service(bundle):
    with serving(bundle) as running:
        yield running


@pytest.fixture
def client(service):
    with service.client() as client:
        yield client
