"""The OpenAPI description, and the service held to it with made-up requests."""

import subprocess
import sys

import pytest

from service.conftest import running
from service.fakes import FakeBundle
from surelabel.service import ServiceSettings

pytestmark = pytest.mark.anyio
TOKEN = "for-the-test"


def test_made_up_requests_never_break_it_or_surprise(tmp_path):
    with running(FakeBundle(), ServiceSettings(token=TOKEN)) as service:
        found = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json", "--no-color"),
                *("--max-examples", "30", "--generation-deterministic", "--header", f"Authorization: Bearer {TOKEN}"),
                # A table is any bytes; which of them can be read is not for a schema to say.
                *("--exclude-path", "/v1/table", "--suppress-health-check", "all", "--warnings", "off"),
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
        answered = service.app.state.metrics.registry.get_sample_value
        assert found.returncode == 0, found.stdout[-6_000:] + found.stderr[-2_000:]
        assert answered("surelabel_requests_total", {"endpoint": "/v1/predict", "status": "200"}) > 10
        assert answered("surelabel_requests_total", {"endpoint": "/v1/predict", "status": "422"}) > 10


async def test_every_address_is_described(client):
    description = (await client.get("/openapi.json")).json()
    assert set(description["paths"]) == {
        *("/v1/predict", "/v1/p-value", "/v1/words", "/v1/model", "/v1/card", "/v1/table"),
        *("/healthz", "/readyz", "/metrics"),
    }
    statuses = {"200", "400", "401", "403", "404", "409", "413", "422", "503"}
    for path in ("/v1/predict", "/v1/p-value", "/v1/words", "/v1/card", "/v1/table"):
        operation = description["paths"][path]["post"]
        assert set(operation["responses"]) == statuses
        assert operation["security"]
        assert operation["description"]
    request = description["components"]["schemas"]["PredictRequest"]["properties"]
    assert request["texts"]["maxItems"] == 256
    assert request["text"]["maxLength"] == 200_000
