"""Taggers behind HTTP: a recorded Annif, and servers that are slow, wrong, redirecting or dead."""

import http.server
import json
import threading

import numpy as np
import pytest

from surelabel import text
from surelabel.exceptions import InvalidInputError, TaggerError

TEXTS = [f"text about {name} number {number}" for number in range(20) for name in ("gold", "oil")]
LABELS = np.array([[1, 0], [0, 1]] * 20)
NAMES = ("http://v/gold", "http://v/oil")
PROJECT = {"project_id": "p", "name": "P", "is_trained": True, "modification_time": "2026-01-01"}
QUICK = {"retries": 2, "pause": 0.01, "timeout": 60.0}


def results(document):
    """Return what Annif answers: float scores, the highest first, zeros among them."""
    place = 0 if "gold" in document else 1
    names = [("http://v/gold", "gold"), ("http://v/oil", "oil")]
    scores = {place: 1.0000001, 1 - place: 0.0}
    return [
        {"uri": uri, "label": label, "notation": None, "score": scores[number]}
        for number, (uri, label) in enumerate(names)
    ]


class Server:
    """A local server whose answers a test sets; it remembers requests."""

    def __init__(self):
        self.requests = []
        self.answer = self.annif

        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_request(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                outer.requests.append((self.command, self.path, dict(self.headers), json.loads(body or "null")))
                try:
                    answered = outer.answer(self.command, self.path, json.loads(body or "null"))
                except ConnectionAbortedError:
                    self.close_connection = True
                    return
                status, content = answered[:2]
                headers = {"content-type": "application/json", **(answered[2] if len(answered) > 2 else {})}
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = handle_request

            def log_message(self, *arguments):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @staticmethod
    def annif(command, path, body):
        if command == "GET":
            return 200, PROJECT
        return 200, [{"results": results(one["text"]), "document_id": one["document_id"]} for one in body["documents"]]

    @staticmethod
    def plain(command, path, body):
        return 200, [
            [{"label": one["label"], "score": min(1.0, one["score"])} for one in results(t)] for t in body["texts"]
        ]


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SURELABEL_TAGGER_TOKEN", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = Server()
    yield running
    running.close()


def annif(server, **settings):
    return text.make("annif", url=server.url, project="p", **{**QUICK, **settings})


def plain(server, **settings):
    server.answer = server.plain
    return text.make("http", url=f"{server.url}/tag", **{**QUICK, **settings})


def posts(server):
    return [request for request in server.requests if request[0] == "POST"]


def test_annif_is_asked_as_its_documentation_says(server):
    fitted = annif(server, limit=7).fit(TEXTS, LABELS, NAMES)
    assert (server.requests[0][0], server.requests[0][1]) == ("GET", "/v1/projects/p")
    assert [path for _, path, _, _ in posts(server)] == ["/v1/projects/p/suggest-batch?limit=7&threshold=0"] * 2
    assert [len(body["documents"]) for *_, body in posts(server)] == [32, 8]
    assert posts(server)[0][3]["documents"][1] == {"text": TEXTS[1], "document_id": "1"}
    probabilities = fitted.predict_proba(["more gold", "", "oil"])
    assert probabilities[[0, 2]].argmax(axis=1).tolist() == [0, 1]
    assert probabilities[1, 0] == probabilities[1, 1]  # an empty text is not sent
    assert fitted.shares_["zero"] == 0  # scores of 0 are dropped


def test_labels_that_have_names_instead_of_uris(server):
    fitted = annif(server).fit(TEXTS, LABELS, ("Gold", "Oil"))
    assert fitted.label_names_ == ("Gold", "Oil")


def test_any_endpoint(server):
    fitted = plain(server, batch_size=16).fit(TEXTS, LABELS, ("gold", "oil"))
    assert [len(body["texts"]) for *_, body in posts(server)] == [16, 16, 8]
    assert fitted.predict_proba(["some oil"])[0].argmax() == 1


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<html>Log in</html>", {"content-type": "text/html"}),
        (200, b'[[{"label": "gold"'),
        (200, {"results": []}),
        (200, [[{"label": "gold", "score": 0.5}]]),  # fewer texts
        (200, [[3]] * 32),
        (200, [[{"label": "gold", "score": "high"}]] * 32),
        (200, b'[[{"label": "gold", "score": NaN}]]'),
        (200, b'[[{"label": "gold", "score": 0.5, "score": 0.6}]]'),
        (301, b"", {"location": "http://elsewhere.example/"}),
        (307, b"", {"location": "/other"}),
        (404, {"title": "Not Found", "detail": "Project not found"}, {"content-type": "application/problem+json"}),
        (400, b""),
        (500, b"oops"),
        (503, {"title": "Service Unavailable"}, {"content-type": "application/problem+json"}),
    ],
)
def test_wrong_answers_are_clear_errors(server, answer):
    tagger = plain(server)
    server.answer = lambda *_: answer
    with pytest.raises(TaggerError, match=server.url) as raised:
        tagger.fit(TEXTS, LABELS, ("gold", "oil"))
    if answer[0] == 404:
        assert "Project not found" in str(raised.value)
    assert len(server.requests) == (3 if answer[0] >= 500 else 1)
    assert not hasattr(tagger, "_curve")


def test_a_server_that_comes_back_is_asked_again(server):
    answers = iter([(503, b""), (429, b"")])
    tagger = plain(server)
    server.answer = lambda *request: next(answers, None) or server.plain(*request)
    assert tagger.fit(TEXTS, LABELS, ("gold", "oil")).predict_proba(["gold"]).shape == (1, 2)


def test_a_slow_server_is_given_up(server):
    tagger = plain(server, timeout=0.05, retries=1)
    given_up = threading.Event()

    def slow(*request):
        given_up.wait()
        return server.plain(*request)

    server.answer = slow
    try:
        with pytest.raises(TaggerError, match="out of reach"):
            tagger.fit(TEXTS[:2], LABELS[:2], ("gold", "oil"))
    finally:
        given_up.set()


def test_a_dead_server(server):
    tagger = annif(server, retries=1)
    server.close()
    with pytest.raises(TaggerError, match="2 attempts"):
        tagger.fit(TEXTS, LABELS, NAMES)
    server.__init__()


def test_a_run_that_was_interrupted_continues(server):
    tagger = annif(server)
    n_answered = 0

    def dies(command, path, body):
        nonlocal n_answered
        n_answered += command == "POST"
        return (500, b"") if n_answered > 1 else Server.annif(command, path, body)

    server.answer = dies
    with pytest.raises(TaggerError, match="continues"):
        tagger.fit(TEXTS, LABELS, NAMES)
    server.answer, server.requests = server.annif, []
    annif(server).fit(TEXTS, LABELS, NAMES)
    assert [len(body["documents"]) for *_, body in posts(server)] == [8]
    server.requests = []
    annif(server).fit(TEXTS, LABELS, NAMES)
    assert posts(server) == []


def test_a_server_that_is_killed_in_the_middle(server):
    """The connection breaks within an answer; a new server at the same address continues."""
    n_asked = 0

    def dies(command, path, body):
        nonlocal n_asked
        n_asked += command == "POST"
        if n_asked > 1:
            raise ConnectionAbortedError  # closes the connection without an answer
        return Server.annif(command, path, body)

    server.answer = dies
    with pytest.raises(TaggerError, match="out of reach"):
        annif(server).fit(TEXTS, LABELS, NAMES)
    server.answer, server.requests = server.annif, []
    fitted = annif(server).fit(TEXTS, LABELS, NAMES)
    assert [len(body["documents"]) for *_, body in posts(server)] == [8]
    assert fitted.held_out_.probabilities.shape == (40, 2)


def test_answers_that_cannot_be_used_are_not_kept(server):
    tagger = plain(server)
    server.answer = lambda command, path, body: (200, [[{"label": "gold", "score": 1.5}]] * len(body["texts"]))
    with pytest.raises(InvalidInputError, match=r"1\.5"):
        tagger.fit(TEXTS, LABELS, ("gold", "oil"))
    server.answer = server.plain
    assert plain(server).fit(TEXTS, LABELS, ("gold", "oil")).predict_proba(["gold"]).shape == (1, 2)


def test_a_tagger_that_begins_to_use_other_labels(server):
    tagger = plain(server).fit(TEXTS, LABELS, ("gold", "oil"))
    server.answer = lambda command, path, body: (200, [[{"label": "or", "score": 0.5}]] * len(body["texts"]))
    with pytest.raises(TaggerError, match="'or'"):
        tagger.predict_proba([f"new text {number}" for number in range(60)])


def test_a_tagger_that_lists_labels_without_scores(server):
    tagger = plain(server, score_kind="rank")
    server.answer = lambda command, path, body: (200, [["gold", "oil"]] * len(body["texts"]))
    probabilities = tagger.fit(TEXTS, LABELS, ("gold", "oil")).predict_proba(["x"])[0]
    np.testing.assert_allclose(probabilities, 20.5 / 41)


def test_answers_of_another_state_of_the_project_do_not_count(server):
    annif(server).fit(TEXTS, LABELS, NAMES)
    server.requests = []
    server.answer = lambda command, *rest: (
        (200, {**PROJECT, "modification_time": "later"}) if command == "GET" else Server.annif(command, *rest)
    )
    annif(server).fit(TEXTS, LABELS, NAMES)
    assert len(posts(server)) == 2


def test_answers_on_disk_have_no_texts(server, tmp_path):
    annif(server).fit(TEXTS, LABELS, NAMES)
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert files
    assert not any(b"text about" in path.read_bytes() for path in files)
    annif(server, keep_answers=False).fit(TEXTS, LABELS, NAMES)


def test_an_untrained_project(server):
    server.answer = lambda *_: (200, {**PROJECT, "is_trained": False})
    with pytest.raises(TaggerError, match="not trained"):
        annif(server).fit(TEXTS, LABELS, NAMES)


def test_the_order_of_annifs_answers_is_checked(server):
    server.answer = lambda command, path, body: (
        (200, PROJECT) if command == "GET" else (200, Server.annif(command, path, body)[1][::-1])
    )
    with pytest.raises(TaggerError, match="order"):
        annif(server).fit(TEXTS, LABELS, NAMES)


@pytest.mark.parametrize(
    ("token", "expected"),
    [("s3cret", ("authorization", "Bearer s3cret")), ("X-Api-Key: s3cret", ("x-api-key", "s3cret"))],
)
def test_a_token_is_sent_but_never_saved_or_logged(server, monkeypatch, tmp_path, caplog, token, expected):
    monkeypatch.setenv("SURELABEL_TAGGER_TOKEN", token)
    caplog.set_level("DEBUG")
    fitted = plain(server).fit(TEXTS, LABELS, ("gold", "oil"))
    headers = {name.lower(): value for name, value in server.requests[0][2].items()}
    assert headers[expected[0]] == expected[1]
    fitted.save(tmp_path / "saved")
    assert not any(b"s3cret" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert "s3cret" not in caplog.text + repr(fitted)
    server.answer = lambda *_: (401, b"")
    with pytest.raises(TaggerError) as raised:
        fitted.predict_proba(["new"])
    assert "s3cret" not in str(raised.value)


def test_a_token_needs_https(monkeypatch):
    monkeypatch.setenv("SURELABEL_TAGGER_TOKEN", "s3cret")
    with pytest.raises(InvalidInputError, match="https"):
        text.make("http", url="http://tagger.example").fit(["a"], [[1]], ("gold",))


@pytest.mark.parametrize("url", ["ftp://x", "tagger.example", "http://u:p@h", "https://h/?key=1", ""])
def test_addresses_that_are_none(url):
    with pytest.raises(InvalidInputError, match="url"):
        text.make("http", url=url)


def test_a_saved_one_asks_the_same_server(server, tmp_path):
    fitted = annif(server).fit(TEXTS, LABELS, NAMES)
    fitted.save(tmp_path / "saved")
    loaded = text.load(tmp_path / "saved")
    np.testing.assert_array_equal(loaded.predict_proba(["oil", "gold"]), fitted.predict_proba(["oil", "gold"]))
