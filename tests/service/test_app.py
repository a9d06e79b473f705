"""What programs ask: answers, p-values, words, the model, and what is refused."""

import asyncio
import json

import pytest

from service.conftest import asking, refused
from service.fakes import HOSTILE, NAMES, FakeBundle
from surelabel.service import ServiceSettings, create_app

pytestmark = pytest.mark.anyio
JSON = {"Content-Type": "application/json"}
RECORD = ["id", "decision", "reason", "labels", "consider", "assign", "confidence", "credibility"]
PREDICTION_SET = ["significance", "size", "size_bounds", "certain", "open", "top"]


async def test_answers_are_the_records_of_the_bundle(client, bundle):
    texts = ["corn and wheat", "maybe oil", "unknown", HOSTILE, ""]
    response = await client.post("/v1/predict", json={"texts": texts, "significance": 0.1, "top": 3})
    expected = [answer.record() for answer in bundle.answers(texts, significance="0.1", probabilities=texts)]
    answers = response.json()["answers"]
    assert [answer.pop("id") for answer in answers] == ["1", "2", "3", "4", "5"]
    assert answers == expected


async def test_without_a_level_there_is_no_prediction_set(client):
    [plain] = (await client.post("/v1/predict", json={"text": "corn"})).json()["answers"]
    assert list(plain) == RECORD
    [full] = (await client.post("/v1/predict", json={"text": "corn", "confidence_level": "0.9"})).json()["answers"]
    assert list(full) == RECORD + PREDICTION_SET
    assert full["significance"] == "0.1"


async def test_ids_come_back(client):
    one = await client.post("/v1/predict", json={"text": "corn", "id": "ticket 7"})
    assert [answer["id"] for answer in one.json()["answers"]] == ["ticket 7"]
    many = await client.post("/v1/predict", json={"texts": ["corn", "oil"], "ids": ["a", "b"]})
    assert [answer["id"] for answer in many.json()["answers"]] == ["a", "b"]
    refused(await client.post("/v1/predict", json={"texts": ["corn", "oil"], "ids": ["a"]}), 409, "ids")
    refused(await client.post("/v1/predict", json={"text": "corn", "id": "a", "ids": ["a"]}), 422)


async def test_p_value_of_a_label_set(client):
    response = await client.post("/v1/p-value", json={"text": "corn and wheat", "labels": ["wheat", "corn", "wheat"]})
    assert response.json() == {"labels": ["corn", "wheat"], "p_value": 0.7}
    message = refused(await client.post("/v1/p-value", json={"text": "a", "labels": ["corn", "ore"]}), 404, "labels[1]")
    assert "ore" in message


async def test_words_that_speak_for_a_label(client):
    response = await client.post("/v1/words", json={"text": "Fresh corn", "label": "corn"})
    assert response.json() == {"label": "corn", "words": [{"start": 6, "end": 10, "weight": 1.0}]}
    refused(await client.post("/v1/words", json={"text": "Fresh corn", "label": "ore"}), 404, "label")


async def test_the_model_describes_itself(client):
    model = (await client.get("/v1/model")).json()
    assert model["labels"] == list(NAMES)
    assert model["smallest_p_value"] == 1 / 400
    assert model["limits"]["max_texts"] == 256
    assert model["groups"] is None


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"", 422, None),
        (b"{", 400, None),
        (b"\xff\xfe", 400, None),
        (b'{"text": "\\ud800"}', 422, "text"),
        (b"[" * 100_000, 400, None),
        (b"[]", 422, None),
        (b"null", 422, None),
        (b'{"texts": ["a", 3]}', 422, "texts[1]"),
        (b'{"text": "a", "significance": 2}', 422, "significance"),
        (b'{"text": "a", "top": 101}', 422, "top"),
        (b'{"text": "a", "caf\\u00e9": 1}', 422, "café"),
        (b'{"text": "a", "top": ' + b"9" * 5_000 + b"}", 400, None),
        (b'{"text": "a", "top": ' + b"9" * 4_000 + b"}", 422, "top"),
        (json.dumps({"texts": ["a"] * 257}).encode(), 422, "texts"),
        (json.dumps({"texts": ["a"] * 200, "top": 60}).encode(), 422, "top"),
        (json.dumps({"texts": ["a", "b" * 200_001]}).encode(), 422, "texts[1]"),
        (json.dumps({"text": "b" * 200_001}).encode(), 422, "text"),
    ],
)
async def test_seventeen_bodies_that_are_refused(client, body, status, field):
    refused(await client.post("/v1/predict", content=body, headers=JSON), status, field)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, None),
        ({"text": "a", "texts": ["a"]}, None),
        ({"text": None}, "text"),
        ({"texts": []}, "texts"),
        ({"text": 3}, "text"),
        ({"text": "a", "top": "5"}, "top"),
        ({"text": "a", "top": True}, "top"),
        ({"text": "a", "top": -1}, "top"),
        ({"text": "a", "significance": 0}, "significance"),
        ({"text": "a", "significance": "1e-999999999"}, "significance"),
        ({"text": "a", "significance": None}, "significance"),
        ({"text": "a", "significance": "0.1", "confidence_level": "0.9"}, None),
        ({"text": "a", "id": ""}, "id"),
    ],
)
async def test_nothing_is_guessed_or_converted(client, body, field):
    refused(await client.post("/v1/predict", json=body), 422, field)


async def test_a_whole_number_may_be_written_with_a_point(client):
    assert (await client.post("/v1/predict", content=b'{"text": "a", "top": 3.0}', headers=JSON)).status_code == 200


async def test_each_text_has_its_group():
    async with asking(create_app(FakeBundle(groups=("chat", "mail")))) as client:
        assert (await client.get("/v1/model")).json()["groups"] == ["chat", "mail"]
        one = await client.post("/v1/predict", json={"texts": ["corn", "oil"], "group": "mail"})
        two = await client.post("/v1/predict", json={"texts": ["corn", "oil"], "groups": ["mail", "chat"]})
        assert one.status_code == two.status_code == 200
        refused(await client.post("/v1/predict", json={"text": "corn"}), 409, "groups")
        refused(await client.post("/v1/predict", json={"text": "corn", "group": "fax"}), 404, "groups[0]")
        body = {"texts": ["corn", "oil"], "groups": ["mail"]}
        refused(await client.post("/v1/predict", json=body), 409, "groups")
        refused(await client.post("/v1/p-value", json={"text": "corn", "labels": []}), 409, "groups")
        page = (await client.get("/")).text
        assert "<option>chat</option>" in page
        assert "channel" in page


async def test_unknown_addresses_and_methods(client):
    for path in ("/nothing", "/static/nothing.js", "/static/..%2fapp.py", "/static/", "/docs", "/review"):
        refused(await client.get(path), 404)
    response = await client.get("/v1/predict")
    refused(response, 405)
    assert response.headers["allow"] == "POST"


async def test_what_breaks_the_classifier_is_500_without_a_trace(client, caplog):
    refused(await client.post("/v1/predict", json={"text": "break"}), 500)
    assert "breaks the classifier" in caplog.text


async def test_alive_before_it_is_ready(bundle):
    app = create_app(bundle)
    async with asking(app) as client:
        while (await client.get("/readyz")).status_code != 200:
            await asyncio.sleep(0)
        assert (await client.get("/healthz")).json() == {"status": "alive"}
    assert not app.state.ready


async def test_metrics_count_requests_and_texts(bundle):
    async with asking(create_app(bundle)) as client:
        await client.post("/v1/predict", json={"texts": ["corn", "oil maybe", "unknown"]})
        await client.post("/v1/predict", json={"text": 3})
        found = (await client.get("/metrics")).text
    assert 'surelabel_requests_total{endpoint="/v1/predict",status="200"} 1.0' in found
    assert 'surelabel_requests_total{endpoint="/v1/predict",status="422"} 1.0' in found
    assert 'surelabel_texts_total{decision="choose"} 1.0' in found
    assert "corn" not in found


async def test_a_body_has_a_limit(bundle):
    settings = ServiceSettings(max_body_bytes=1_024)
    async with asking(create_app(bundle, settings)) as client:
        body = b'{"text": "corn"}'
        assert (await client.post("/v1/predict", content=body.ljust(1_024), headers=JSON)).status_code == 200
        refused(await client.post("/v1/predict", content=body.ljust(1_025), headers=JSON), 413)
        refused(await client.post("/v1/predict", content=body.ljust(9_000), headers=JSON), 413)
