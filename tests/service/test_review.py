"""A review over HTTP: what reviewers are shown, what is saved, and what the blind check leads to."""

import io

import numpy as np
import openpyxl
import pytest

from service_running import HOSTILE, make_bundle, serving
from surelabel.review import IncomingSettings, ReviewStore
from surelabel.review.incoming import Incoming
from surelabel.service import ServiceSettings
from surelabel.service.reviewing import Reviewing

pytestmark = pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
LEVEL = "0.2"


def rows_of(n=20):
    names = make_bundle().label_names
    rng = np.random.default_rng(0)
    texts = [" ".join(names[i] for i in rng.choice(12, 2, replace=False)) for _ in range(n)]
    return [Incoming(f"t{k}", text, {"id": f"t{k}", "title": f"title {k}"}) for k, text in enumerate(texts)]


@pytest.fixture
def reviewing(tmp_path, bundle):
    with ReviewStore(tmp_path / "reviews.sqlite") as store:
        yield Reviewing(store, bundle, None, IncomingSettings(significance=LEVEL, check_share=0))


@pytest.fixture
def client(reviewing, bundle):
    reviewing.take_in(rows_of())
    with serving(bundle, reviewing=reviewing) as running, running.client() as client:
        yield client


def lease(client, reviewer="ann", queue="choose", n=5):
    answer = client.post("/v1/review/lease", json={"reviewer": reviewer, "queue": queue, "n": n})
    assert answer.status_code == 200, answer.text
    return answer.json()["texts"]


def decide(client, text, reviewer="ann", key=None, action="accept", **more):
    body = {"key": key or f"{reviewer}-{text['number']}", "number": text["number"], "reviewer": reviewer}
    return client.post("/v1/review/decisions", json={**body, "action": action, **more})


def test_the_description_lists_the_addresses_of_a_review(client):
    description = client.get("/openapi.json").json()
    names = ("lease", "renew", "decisions", "undo", "calibration", "switch")
    for name in names:
        operation = description["paths"][f"/v1/review/{name}"]["post"]
        assert {"200", "401", "409", "422", "503"} <= set(operation["responses"])
        if name != "calibration":
            reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            schema = description["components"]["schemas"][reference.rpartition("/")[2]]
            assert ("model" if name == "switch" else "reviewer") in schema["required"]
    read = {f"/v1/review{name}" for name in ("", "/words", "/summary", "/export")}
    assert {path for path, ways in description["paths"].items() if "review" in path and "get" in ways} == read
    parameters = description["paths"]["/v1/review/words"]["get"]["parameters"]
    assert {parameter["name"] for parameter in parameters} == {"number", "label"}


def test_counts_leases_decisions_and_undo(client):
    queues = client.get("/v1/review").json()["queues"]
    assert sum(counts["waiting"] for counts in queues.values()) == 20
    assert queues["choose"]["waiting"] >= 10
    first, second, *_ = lease(client)
    assert first["offer"]["options"]
    others = lease(client, "bob")
    assert not {text["number"] for text in others} & {first["number"], second["number"]}
    assert decide(client, first, labels=first["offer"]["labels"]).json()["labels"] == sorted(first["offer"]["labels"])
    assert decide(client, second, action="edit", labels=["corn", "trade"], seconds=1.5).status_code == 200
    assert client.get("/v1/review").json()["queues"]["choose"]["decided"] == 2
    undone = client.post("/v1/review/undo", json={"key": "u", "reviewer": "ann"}).json()["text"]
    assert undone["number"] == second["number"]
    assert client.get("/v1/review").json()["queues"]["choose"]["decided"] == 1
    assert client.post("/v1/review/renew", json={"reviewer": "ann"}).json()["leased"] == 4


def test_a_decision_that_is_sent_again_and_one_that_comes_too_late(client):
    text = lease(client)[0]
    assert decide(client, text).json() == decide(client, text).json()
    late = decide(client, text, "bob")
    assert (late.status_code, late.json()["error"]["code"]) == (409, "conflict")
    other = lease(client)[0]
    assert decide(client, other, "bob").status_code == 409


@pytest.mark.parametrize(
    "change",
    [
        {"labels": ["no such label"]},
        {"action": "shrug"},
        {"number": 10**6},
        {"number": -1},
        {"reviewer": ""},
        {"extra": 1},
        {"seconds": -1},
        {"labels": "corn"},
    ],
)
def test_wrong_decisions_are_refused_and_nothing_is_saved(client, reviewing, change):
    text = lease(client)[0]
    body = {"key": "k", "number": text["number"], "reviewer": "ann", "action": "edit", "labels": ["corn"], **change}
    answer = client.post("/v1/review/decisions", json=body)
    assert answer.status_code == 422
    assert set(answer.json()["error"]) == {"code", "message", "what_to_do", "field"}
    assert reviewing.store.history() == []


def test_changing_the_queue_gives_texts_back(client):
    held = lease(client, "ann", "choose", 50)
    assert lease(client, "bob", "choose") == []
    lease(client, "ann", "read")
    assert len(lease(client, "bob", "choose", 50)) == len(held)


def test_words_that_speak_for_a_label(client):
    text = lease(client)[0]
    label = text["text"].split()[0]
    found = client.get("/v1/review/words", params={"number": text["number"], "label": label}).json()
    assert [text["text"][word["start"] : word["end"]] for word in found["words"]] == [label]
    assert client.get("/v1/review/words", params={"number": text["number"], "label": "none"}).status_code == 422
    wrong = client.get("/v1/review/words", params={"number": "x", "label": label})
    assert (wrong.status_code, wrong.json()["error"]["field"]) == (422, "number")


def test_export_in_three_formats(client):
    text = lease(client)[0]
    decide(client, text, action="edit", labels=["corn", "trade"])
    answer = client.get("/v1/review/export", params={"kind": "csv", "separator": ";"})
    assert answer.headers["content-disposition"] == 'attachment; filename="reviewed.csv"'
    lines = answer.text.splitlines()
    assert lines[0] == "id,title,final_labels,decided_by,queue,changed"
    assert f"{text['id']},title {text['id'][1:]},corn;trade,ann,choose,true" in lines
    assert len(client.get("/v1/review/export", params={"kind": "jsonl"}).text.splitlines()) == 20
    book = openpyxl.load_workbook(io.BytesIO(client.get("/v1/review/export", params={"kind": "xlsx"}).content))
    assert book.worksheets[0].max_row == 21
    assert client.get("/v1/review/export", params={"kind": "exe"}).status_code == 422


def test_the_summary(client):
    first, second, *_ = lease(client)
    decide(client, first, seconds=2.0)
    decide(client, second, action="none", seconds=4.0)
    summary = client.get("/v1/review/summary").json()
    assert (summary["n_decided"], summary["median_seconds"], summary["agreement"]) == (2, 3.0, 0.5)


def test_the_pages_are_there_only_with_a_review(client, service):
    page = client.get("/review")
    assert page.status_code == 200
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert client.get("/v1/model").json()["has_review"]
    with service.client() as plain:
        assert plain.get("/review").status_code == 404
        assert plain.get("/v1/review").status_code == 404
        assert not plain.get("/v1/model").json()["has_review"]


def test_everything_needs_the_token(reviewing, bundle):
    reviewing.take_in(rows_of(3))
    with serving(bundle, ServiceSettings(token="a token"), reviewing=reviewing) as running, running.client() as client:
        for path in ("", "/summary", "/export", "/words?number=1&label=corn"):
            assert client.get(f"/v1/review{path}").status_code == 401
        for path in ("lease", "renew", "decisions", "undo", "calibration", "switch"):
            assert client.post(f"/v1/review/{path}", json={}).status_code == 401
        assert client.post("/label-studio/predict", json={"tasks": []}).status_code == 401
        assert client.get("/v1/review", headers={"Authorization": "Bearer a token"}).status_code == 200


def test_the_blind_check_shows_nothing_of_the_model(tmp_path, bundle):
    with ReviewStore(tmp_path / "reviews.sqlite") as store:
        reviewing = Reviewing(store, bundle, None, IncomingSettings(significance=LEVEL, check_share=1))
        reviewing.take_in([*rows_of(5), Incoming("hostile", HOSTILE, {})])
        with serving(bundle, reviewing=reviewing) as running, running.client() as client:
            texts = lease(client, queue="check", n=10)
            assert len(texts) == 6
            assert all(set(text) == {"number", "id", "text", "queue"} for text in texts)
            asked = {"number": texts[0]["number"], "label": texts[0]["text"].split()[0]}
            assert client.get("/v1/review/words", params=asked).status_code == 409


def test_a_new_calibration_is_compared_and_a_person_switches(tmp_path):
    bundle = make_bundle()
    with ReviewStore(tmp_path / "reviews.sqlite") as store:
        reviewing = Reviewing(store, bundle, None, IncomingSettings(significance=LEVEL, check_share=0.5))
        reviewing.take_in(rows_of(160))
        with serving(bundle, reviewing=reviewing) as running, running.client() as client:
            assert client.post("/v1/review/calibration").status_code == 422  # nothing is checked yet
            while texts := lease(client, queue="check", n=50):
                for text in texts:
                    assert decide(client, text, action="edit", labels=text["text"].split()).status_code == 200
            state = client.get("/v1/review").json()
            assert state["blind"]["n_texts"] >= state["calibration"]["needed"] == 50
            assert state["blind"]["n_missed"] == 0
            update = client.post("/v1/review/calibration").json()
            assert update["n_texts"] == state["blind"]["n_texts"]
            assert set(update["before"]) == set(update["after"]) >= {"error", "median_size", "filed"}
            assert client.get("/v1/model").json()["n_calibration"] == 399  # the old one is in use
            assert client.get("/v1/review").json()["calibration"]["update"] == update
            assert client.post("/v1/review/switch", json={"model": "another"}).status_code == 409
            assert client.post("/v1/review/switch", json={"model": update["model"]}).status_code == 200
            assert client.get("/v1/model").json()["n_calibration"] == update["n_texts"]
            assert client.post("/v1/predict", json={"text": "corn"}).status_code == 200
            assert client.get("/v1/review").json()["calibration"]["update"] is None


def test_a_store_that_is_away_is_named_and_the_decision_can_be_sent_again(client, reviewing, monkeypatch):
    import sqlalchemy.exc

    text = lease(client)[0]
    save = reviewing.store.decide

    def away(*arguments, **options):
        raise sqlalchemy.exc.OperationalError("insert", {}, Exception("the database is away"))

    monkeypatch.setattr(reviewing.store, "decide", away)
    answer = decide(client, text)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    monkeypatch.setattr(reviewing.store, "decide", save)
    assert decide(client, text).status_code == 200
    assert len(reviewing.store.history()) == 1
