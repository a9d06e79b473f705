"""The service over real HTTP."""

import base64
import concurrent.futures
import json
import re
import socket
import threading
import time

import httpx
import numpy as np
import pytest

from service_running import HOSTILE, NAMES, KeywordClassifier, grouped_bundle, make_bundle, serving
from surelabel.answers import answer_probabilities
from surelabel.service import ServiceSettings
from surelabel.service.schemas import text_answer

JSON = {"Content-Type": "application/json"}
HEAD = b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def problem(response, status, code):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    told = response.json()["error"]
    assert told["code"] == code
    assert set(told) == {"code", "message", "what_to_do", "field"}
    assert told["message"]
    assert told["what_to_do"]
    assert "Traceback" not in response.text
    return told


def test_answers_are_those_of_the_library(client, bundle):
    texts = ["corn and wheat", "trade maybe", "nothing that is known", HOSTILE, ""]
    body = {"texts": texts, "significance": 0.1, "top": 3}
    response = client.post("/v1/predict", json=body)
    assert response.status_code == 200
    found = response.json()
    answers = answer_probabilities(bundle.predictor, bundle.predict_proba(texts), significance="0.1", top=3)
    assert found["answers"] == [json.loads(text_answer(answer).model_dump_json()) for answer in answers]
    assert found["significance"] == "0.1"
    assert found["n_candidates"]["lower"] == str(2**90 - 1)
    assert found["answers"][0]["labels"] == ["corn", "wheat"]


def test_descriptions_are_sent_where_asked_for(client, bundle):
    asked = {"texts": ["corn and wheat maybe", "unknown"], "significance": "0.2"}
    plain = client.post("/v1/predict", json=asked).json()
    found = client.post("/v1/predict", json={**asked, "describe": True}).json()
    expected = bundle.answers(asked["texts"], significance="0.2", describe=True)
    assert [answer["description"] for answer in plain["answers"]] == [None, None]
    assert [answer["description"] for answer in found["answers"]] == [answer.description for answer in expected]
    assert "label-set" in found["answers"][0]["description"]


def test_one_text_and_the_default_level(client):
    one = client.post("/v1/predict", json={"text": "corn"}).json()
    assert one == client.post("/v1/predict", json={"texts": ["corn"], "confidence_level": "0.95", "top": 5}).json()
    assert one["significance"] == "0.05"


def test_a_huge_set_is_answered_by_its_size(client):
    answer = client.post("/v1/predict", json={"text": "unknown", "significance": "0.003"}).json()["answers"][0]
    assert int(answer["size"]["upper"]) > 2**53
    assert "× 10^" in answer["size"]["readable"]
    assert len(answer["top"]) == 5


def test_p_value(client, bundle):
    response = client.post("/v1/p-value", json={"text": "corn and wheat", "labels": ["wheat", "corn", "wheat"]})
    expected = bundle.predict_p(["corn and wheat"], [["corn", "wheat"]])[0]
    assert response.json() == {"labels": ["corn", "wheat"], "p_value": expected, "is_candidate": True}
    empty = client.post("/v1/p-value", json={"text": "corn", "labels": []}).json()
    assert empty["is_candidate"] is False
    told = problem(client.post("/v1/p-value", json={"text": "a", "labels": ["corn", "barley"]}), 422, "invalid_request")
    assert told["field"] == "labels[1]"
    assert "barley" in told["message"]


def test_model(client, bundle):
    model = client.get("/v1/model").json()
    assert model["labels"] == list(NAMES)
    assert model["n_calibration"] == 399
    assert model["smallest_p_value"] == 1 / 400
    assert model["has_report"] is False
    assert model["evaluation"] is None
    assert len(model["examples"]) == 3
    assert model["limits"]["max_texts"] == 256


def test_health_and_readiness(client):
    assert client.get("/healthz").json() == {"status": "alive"}
    assert client.get("/readyz").json() == {"status": "ready"}


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        (b"", 400, "not_json", None),
        (b"{", 400, "not_json", None),
        (b"\xff\xfe", 400, "not_json", None),
        (b'{"text": "\\ud800"}', 400, "not_json", None),
        (b"[" * 100_000, 400, "not_json", None),
        (b"[]", 422, "invalid_request", None),
        (b"null", 422, "invalid_request", None),
        (b'{"texts": ["a", 3]}', 422, "invalid_request", "texts[1]"),
        (b'{"text": "a", "significance": 2}', 422, "invalid_request", "significance"),
        (b'{"text": "a", "top": 101}', 422, "invalid_request", "top"),
        (b'{"text": "a", "caf\\u00e9": 1}', 422, "invalid_request", "café"),
        (b'{"text": "a", "top": ' + b"9" * 5_000 + b"}", 400, "not_json", None),
        (b'{"text": "a", "top": ' + b"9" * 4_000 + b"}", 422, "invalid_request", "top"),
        (json.dumps({"texts": ["a"] * 257}).encode(), 422, "invalid_request", "texts"),
        (json.dumps({"texts": ["a"] * 200, "top": 60}).encode(), 422, "invalid_request", "top"),
        (json.dumps({"texts": ["a", "b" * 200_001]}).encode(), 422, "invalid_request", "texts[1]"),
        (json.dumps({"text": "b" * 200_001}).encode(), 422, "invalid_request", "text"),
    ],
)
def test_bodies_that_are_refused(client, body, status, code, field):
    assert problem(client.post("/v1/predict", content=body, headers=JSON), status, code)["field"] == field


def test_other_content_types_are_refused(client):
    # A page of another site can send these without asking the browser's leave.
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        response = client.post("/v1/predict", content=b'{"text": "a"}', headers={"Content-Type": media_type})
        problem(response, 415, "not_json")
    is_json = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert client.post("/v1/predict", content=b'{"text": "a"}', headers=is_json).status_code == 200


def test_unknown_addresses_and_methods(client):
    for path in ("/nothing", "/static/nothing.js", "/static/..%2fapp.py", "/static/", "/docs"):
        problem(client.get(path), 404, "not_found")
    response = client.get("/v1/predict")
    problem(response, 405, "wrong_method")
    assert response.headers["allow"] == "POST"


def send_until_hung_up(connection, most):
    """Send chunks of a megabyte until the server hangs up; return how many it took."""
    for number in range(most):
        try:
            connection.sendall(b"100000\r\n" + b" " * 2**20 + b"\r\n")
        except OSError:
            return number
    return most


def test_large_bodies_are_cut_off_while_they_come(service):
    limit = ServiceSettings().max_body_bytes
    with service.client() as client:
        problem(client.post("/v1/predict", content=b" " * (limit + 1), headers=JSON), 413, "body_too_large")
    # In chunks, without a length in the head; the server answers long before the end.
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        n_sent = send_until_hung_up(connection, 200)
    assert n_sent < 50
    with service.client() as client:
        assert client.get("/healthz").status_code == 200


def test_a_body_at_the_limit_is_taken():
    with serving(make_bundle(), ServiceSettings(max_body_bytes=1_024)) as running, running.client() as client:
        body = b'{"text": "corn"}'
        assert client.post("/v1/predict", content=body.ljust(1_024), headers=JSON).status_code == 200
        problem(client.post("/v1/predict", content=body.ljust(1_025), headers=JSON), 413, "body_too_large")


def test_a_body_that_does_not_come():
    with serving(make_bundle(), ServiceSettings(body_timeout=0.2)) as running:
        host, port = running.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(HEAD + b"Content-Length: 9\r\n\r\n{")
            assert b" 408 " in connection.recv(4_096).splitlines()[0]


def test_security_headers(client):
    for path in ("/", "/v1/model", "/nothing", "/static/page.js", "/metrics"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "unsafe" not in headers["content-security-policy"]
        assert "server" not in headers or "uvicorn" in headers["server"]
    assert client.get("/v1/model").headers["cache-control"] == "no-store"


def test_static_files_are_revalidated(client):
    first = client.get("/static/page.js")
    assert first.headers["content-type"].startswith("text/javascript")
    again = client.get("/static/page.js", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""


def test_other_host_names_are_refused_on_loopback(client):
    problem(client.get("/v1/model", headers={"Host": "attacker.example"}), 421, "wrong_host")
    problem(client.get("/v1/model", headers={"Host": ""}), 421, "wrong_host")
    for host in ("localhost:9", "[::1]:9", "127.0.0.1"):
        assert client.get("/healthz", headers={"Host": host}).status_code == 200


def test_token():
    with serving(make_bundle(), ServiceSettings(token="open sesame")) as running, running.client() as client:
        for header in (
            "",
            "Bearer",
            "Bearer wrong",
            "Basic " + base64.b64encode(b"a:open sesame").decode(),
            "open sesame",
        ):
            headers = {"Authorization": header} if header else {}
            for response in (
                client.get("/v1/model", headers=headers),
                client.post("/v1/predict", content=b"{", headers={**headers, **JSON}),
                client.post("/v1/p-value", content=b"{", headers={**headers, **JSON}),
            ):
                problem(response, 401, "unauthorized")
                assert response.headers["www-authenticate"].startswith("Bearer")
        problem(client.get("/metrics"), 401, "unauthorized")
        problem(client.get("/report"), 401, "unauthorized")
        good = {"Authorization": "bearer open sesame"}
        assert client.get("/v1/model", headers=good).status_code == 200
        assert client.post("/v1/predict", json={"text": "corn"}, headers=good).status_code == 200
        assert client.get("/metrics", headers=good).status_code == 200
        # A browser asks for a password where it follows a link.
        assert client.get("/report").headers["www-authenticate"].startswith("Basic")
        problem(client.get("/report", auth=("any", "open sesame")), 404, "no_report")
        problem(client.get("/report", headers={"Authorization": "Basic %%%"}), 401, "unauthorized")
        problem(
            client.get("/report", headers={"Authorization": "Basic " + "é".encode("latin-1").hex()}),
            401,
            "unauthorized",
        )
        for open_path in ("/", "/healthz", "/readyz", "/static/page.js", "/openapi.json"):
            assert client.get(open_path).status_code == 200
        description = client.get("/openapi.json").json()
        assert description["paths"]["/v1/predict"]["post"]["security"] == [{"token": []}]


def test_report():
    report = b"<!doctype html><style>p{color:red}</style><p>Figures</p>"
    with serving(make_bundle(report=report)) as running, running.client() as client:
        response = client.get("/report")
        assert response.text.endswith("Figures</p>")
        policy = response.headers["content-security-policy"]
        assert "style-src 'unsafe-inline'" in policy
        assert "script-src" not in policy
        assert "default-src 'none'" in policy
        assert client.get("/v1/model").json()["has_report"] is True


class _Slow(KeywordClassifier):
    """Waits until it is let go."""

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.batches = []

    def predict_proba(self, texts):
        self.batches.append(len(texts))
        assert self.gate.wait(20)
        return super().predict_proba(texts)


def ask(running, text, **more):
    with running.client() as client:
        return client.post("/v1/predict", json={"text": text, **more})


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def waiting_texts(running):
    return running.app.state.metrics.registry.get_sample_value("surelabel_queue_texts")


def test_concurrent_requests_share_batches_and_a_bad_one_fails_alone():
    slow = _Slow()
    with serving(make_bundle(classifier=slow)) as running, concurrent.futures.ThreadPoolExecutor(12) as pool:
        slow.gate.clear()
        slow.batches.clear()
        first = pool.submit(ask, running, "corn")
        wait_until(lambda: slow.batches)
        texts = ["wheat", "break", "trade", "grain corn"]
        others = [
            pool.submit(ask, running, text, significance=level)
            for text, level in zip(texts, (0.1, 0.1, 0.2, 0.3), strict=True)
        ]
        wait_until(lambda: waiting_texts(running) == 4)
        # The loop answers others while the classifier is stuck.
        with running.client() as client:
            assert client.get("/healthz").status_code == 200
        slow.gate.set()
        assert first.result().json()["answers"][0]["labels"] == ["corn"]
        answers = [other.result() for other in others]
        problem(answers.pop(1), 500, "internal")
        assert [answer.json()["answers"][0]["labels"] for answer in answers] == [
            ["wheat"],
            ["trade"],
            ["corn", "grain"],
        ]
        assert [answer.json()["significance"] for answer in answers] == ["0.1", "0.2", "0.3"]
        assert slow.batches[1] == 4


def test_a_full_queue_answers_503():
    slow = _Slow()
    settings = ServiceSettings(max_queue_texts=1)
    with serving(make_bundle(classifier=slow), settings) as running, concurrent.futures.ThreadPoolExecutor(4) as pool:
        slow.gate.clear()
        slow.batches.clear()
        running_request = pool.submit(ask, running, "corn")
        wait_until(lambda: slow.batches)
        waiting = pool.submit(ask, running, "corn")
        wait_until(lambda: waiting_texts(running) == 1)
        refused = ask(running, "corn")
        problem(refused, 503, "queue_full")
        assert int(refused.headers["retry-after"]) >= 1
        slow.gate.set()
        assert running_request.result().status_code == waiting.result().status_code == 200


def test_too_many_requests_at_once_answer_503_but_watchers_get_through():
    slow = _Slow()
    settings = ServiceSettings(max_requests=1)
    with serving(make_bundle(classifier=slow), settings) as running, concurrent.futures.ThreadPoolExecutor(4) as pool:
        slow.gate.clear()
        slow.batches.clear()
        running_request = pool.submit(ask, running, "corn")
        wait_until(lambda: slow.batches)
        problem(ask(running, "corn"), 503, "too_many_requests")
        with running.client() as client:
            assert client.get("/metrics").status_code == 200
        slow.gate.set()
        assert running_request.result().status_code == 200


def test_a_request_that_takes_too_long_answers_503():
    slow = _Slow()
    with serving(make_bundle(classifier=slow), ServiceSettings(timeout=0.2)) as running:
        slow.gate.clear()
        problem(ask(running, "corn"), 503, "timeout")
        slow.gate.set()
        assert ask(running, "corn").status_code == 200


def test_shutdown_finishes_what_is_running():
    slow = _Slow()
    with serving(make_bundle(classifier=slow)) as running, concurrent.futures.ThreadPoolExecutor(4) as pool:
        slow.gate.clear()
        slow.batches.clear()
        requests = [pool.submit(ask, running, "corn") for _ in range(3)]
        wait_until(lambda: slow.batches and sum(slow.batches) + waiting_texts(running) == 3)
        running.server.should_exit = True
        time.sleep(0.3)
        with pytest.raises(httpx.TransportError):
            ask(running, "late")
        slow.gate.set()
        assert [request.result().status_code for request in requests] == [200, 200, 200]


class _Broken(KeywordClassifier):
    def predict_proba(self, texts):
        raise RuntimeError("secret path /srv/models")


def test_failures_say_nothing_of_the_inside_and_the_service_is_not_ready(caplog):
    from service_running import start

    running = start(make_bundle(classifier=_Broken()), wait=False)
    try:
        response = ask(running, "corn")
        problem(response, 500, "internal")
        assert "secret" not in response.text
        with running.client() as client:
            problem(client.get("/readyz"), 503, "not_ready")
            assert client.get("/healthz").status_code == 200
    finally:
        running.stop()
    assert "secret path" in caplog.text


def test_many_texts_in_one_request(client, bundle):
    texts = [f"{NAMES[number % 12]} {'maybe' * (number % 3 == 0)}" for number in range(200)]
    found = client.post("/v1/predict", json={"texts": texts, "top": 1}).json()["answers"]
    forced = bundle.predict(texts)
    assert [answer["labels"] for answer in found] == [sorted(labels) for labels in forced.label_sets]
    assert np.allclose([answer["credibility"] for answer in found], forced.credibility, rtol=0, atol=0)


def test_the_watch_is_off_unless_it_is_asked_for():
    with serving(make_bundle(), ServiceSettings(watch=True)) as running, running.client() as client:
        client.post("/v1/predict", json={"texts": ["corn", "wheat"]})

        def sample(name):
            lines = client.get("/metrics").text.splitlines()
            return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

        assert sample("surelabel_watch_texts") == 2  # the warm-up is none
        for texts in (["corn", "wheat", "grain", "trade"] * 20, ["unknown"] * 80):
            assert sample("surelabel_watch_alarm") == 0
            client.post("/v1/predict", json={"texts": texts, "top": 0})
        assert sample("surelabel_watch_alarm") == 1
        assert sample("surelabel_watch_log10_capital") > 1
    with serving(make_bundle()) as running, running.client() as client:
        assert "surelabel_watch" not in client.get("/metrics").text


def test_metrics():
    with serving(make_bundle()) as running, running.client() as client:
        client.post("/v1/predict", json={"texts": ["corn", "unknown"], "significance": 0.9})
        client.post("/v1/predict", content=b"{", headers=JSON)
        client.get("/nothing")
        text = client.get("/metrics").text
        sample = running.app.state.metrics.registry.get_sample_value
        assert sample("surelabel_requests_total", {"endpoint": "/v1/predict", "status": "200"}) == 1
        assert sample("surelabel_requests_total", {"endpoint": "/v1/predict", "status": "400"}) == 1
        assert sample("surelabel_requests_total", {"endpoint": "other", "status": "404"}) == 1
        assert sample("surelabel_texts_total") == 2
        assert sample("surelabel_credibility_count") == 2
        empty = sample("surelabel_empty_sets_total")
        assert empty >= 1
        assert f"surelabel_empty_set_share {empty / 2}" in text
        assert sample("surelabel_set_size_count") == 2
        assert sample("surelabel_batch_texts_sum") == 5  # the warm-up is three
        assert 0 < float(re.search(r"^surelabel_conformal_time_share (\S+)$", text, re.MULTILINE).group(1)) < 1
        assert sample("surelabel_conformal_processor_seconds_total") > 0
        assert sample("surelabel_ready") == 1
        assert "surelabel_request_seconds_bucket" in text
        assert "python_gc" not in text


def test_groups_are_asked_for_listed_and_checked():
    with serving(grouped_bundle()) as running, running.client() as client:
        model = client.get("/v1/model").json()
        assert (model["group_column"], model["groups"]) == ("channel", ["chat", "mail"])
        said = client.post("/v1/predict", json={"texts": ["corn", "wheat"], "groups": ["mail", "chat"]}).json()
        assert [answer["category"] for answer in said["answers"]] == ["group 'mail'", "group 'chat'"]
        assert client.post("/v1/p-value", json={"text": "corn", "labels": ["corn"], "group": "mail"}).status_code == 200
        for body, field in (
            ({"text": "corn"}, "group"),
            ({"text": "corn", "group": "fax"}, "group"),
            ({"text": "corn", "group": ""}, "group"),
            ({"texts": ["corn", "wheat"], "groups": ["mail", "fax"]}, "groups[1]"),
        ):
            refused = client.post("/v1/predict", json=body)
            assert (refused.status_code, refused.json()["error"]["field"]) == (422, field)
        assert client.post("/v1/predict", json={"texts": ["corn"], "groups": ["mail", "mail"]}).status_code == 422
