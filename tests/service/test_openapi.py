"""The OpenAPI description, and the service held to it with made-up requests."""

import subprocess
import sys

import pytest

from service_running import make_bundle, serving
from surelabel.service import ServiceSettings, create_app

TOKEN = "for-the-test"


# Made-up levels are smaller than the calibration texts allow for.
@pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
def test_made_up_requests_never_break_it_or_surprise(tmp_path):
    report = b"<!doctype html><p>Figures</p>"
    # Small limits, so that made-up requests come near them.
    settings = ServiceSettings(token=TOKEN, max_texts=4, max_text_chars=200, max_top=20, max_label_sets=80)
    with serving(make_bundle(report=report), settings) as running:
        found = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{running.url}/openapi.json", "--no-color"),
                *("--max-examples", "40", "--generation-deterministic", "--header", f"Authorization: Bearer {TOKEN}"),
                # Which tasks can be predicted is up to their labelling interface, not to the schema.
                *("--exclude-path-regex", "^/label-studio/"),
                *("--request-timeout", "20", "--suppress-health-check", "all", "--warnings", "off"),
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
            timeout=300,
        )
        answered = running.app.state.metrics.registry.get_sample_value
        assert found.returncode == 0, found.stdout[-6_000:] + found.stderr[-2_000:]
        assert answered("surelabel_requests_total", {"endpoint": "/v1/predict", "status": "200"}) > 20
        assert answered("surelabel_requests_total", {"endpoint": "/v1/predict", "status": "422"}) > 20


def test_the_application_describes_itself_as_it_is_served(client):
    served = client.get("/openapi.json").json()
    described = create_app(make_bundle()).openapi()
    assert described["paths"].keys() == served["paths"].keys()
    assert described["components"]["schemas"].keys() == served["components"]["schemas"].keys()


def test_every_status_is_described(client):
    description = client.get("/openapi.json").json()
    assert set(description["paths"]) == {
        "/v1/predict",
        "/v1/p-value",
        "/v1/outcomes",
        "/v1/model",
        "/healthz",
        "/readyz",
        "/metrics",
        "/report",
        "/label-studio/health",
        "/label-studio/setup",
        "/label-studio/predict",
    }
    more = {"/v1/predict": {"409"}, "/v1/p-value": set(), "/v1/outcomes": {"404", "409"}}
    for path, others in more.items():
        operation = description["paths"][path]["post"]
        assert set(operation["responses"]) == others | {
            "200",
            "400",
            "401",
            "405",
            "408",
            "413",
            "415",
            "421",
            "422",
            "500",
            "503",
        }
        assert operation["requestBody"]["content"]["application/json"]["examples"]
        assert operation["summary"]
    properties = description["components"]["schemas"]["PredictRequest"]["properties"]
    assert properties["texts"]["maxItems"] == 256
    assert properties["top"]["maximum"] == 100
    assert "security" not in description["paths"]["/v1/predict"]["post"]


def test_examples_of_the_description_are_answered(client):
    description = client.get("/openapi.json").json()
    for path in ("/v1/predict", "/v1/p-value"):
        examples = description["paths"][path]["post"]["requestBody"]["content"]["application/json"]["examples"]
        for example in examples.values():
            assert client.post(path, json=example["value"]).status_code == 200
