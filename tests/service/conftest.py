"""A service in process, and one behind real HTTP."""

import contextlib
import dataclasses
import socket
import threading

import httpx
import pytest
import uvicorn

from service.fakes import FakeBundle
from surelabel.service import ServiceSettings, create_app


@contextlib.asynccontextmanager
async def asking(app, **headers):
    """A client of an application in this process, which is started and stopped."""
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
            yield client


@dataclasses.dataclass
class Running:
    """A service that runs in a thread."""

    url: str
    app: object
    server: uvicorn.Server
    thread: threading.Thread

    def stop(self):
        self.server.should_exit = True
        self.thread.join(30)
        assert not self.thread.is_alive()


@contextlib.contextmanager
def running(bundle, settings=None, store=None, learner=None):
    """A service behind real HTTP, on a free port."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = create_app(bundle, settings or ServiceSettings(), store, learner)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    service = Running(f"http://127.0.0.1:{listening.getsockname()[1]}", app, server, thread)
    try:
        while httpx.get(f"{service.url}/readyz", timeout=None).status_code != 200:
            assert thread.is_alive()
        yield service
    finally:
        service.stop()


@pytest.fixture(scope="session")
def bundle():
    return FakeBundle()


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
async def client(bundle):
    async with asking(create_app(bundle)) as client:
        yield client


def refused(response, status, field=None):
    """Check the shape of an error and return its message."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert set(error) == {"code", "message", "what_to_do", "field"}
    assert error["field"] == field
    assert error["message"]
    assert error["what_to_do"]
    assert "Traceback" not in response.text
    return error["message"]
