"""Clients that are too slow, too many or gone: others are served all the same."""

import contextlib
import json
import logging
import socket
import time

import pytest

from service_running import make_bundle, serving
from surelabel.service import ServiceSettings

SLOW_BODY = (
    b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
)


@contextlib.contextmanager
def sockets(running, number, send=b""):
    """Open connections, and send something on each of them."""
    host, port = running.url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as opened:
        connections = []
        for _ in range(number):
            connection = opened.enter_context(socket.create_connection((host, int(port)), timeout=10))
            with contextlib.suppress(OSError):
                connection.sendall(send)
            connections.append(connection)
        yield connections


def is_closed(connection, seconds):
    """Tell whether the other side closes a connection in time."""
    connection.settimeout(seconds)
    try:
        while connection.recv(65_536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def asks(running):
    with running.client() as client:
        return client.post("/v1/predict", json={"text": "corn"}).status_code


def test_silent_connections_are_closed():
    settings = ServiceSettings(head_timeout=0.3)
    with serving(make_bundle(), settings) as running, sockets(running, 3) as connections:
        assert all(is_closed(connection, 5) for connection in connections)
        assert asks(running) == 200


def test_a_head_that_comes_byte_by_byte_is_cut_off():
    settings = ServiceSettings(head_timeout=0.4)
    with serving(make_bundle(), settings) as running, sockets(running, 1, b"GET /healthz") as [connection]:
        start = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() < start + 5:
                connection.sendall(b"x")
                time.sleep(0.05)
        assert time.monotonic() < start + 4


def test_a_connection_kept_alive_may_be_used_again():
    settings = ServiceSettings(head_timeout=0.5)
    with serving(make_bundle(), settings) as running, running.client() as client:
        for _ in range(3):
            assert client.get("/healthz").status_code == 200
            time.sleep(0.3)


def test_more_connections_than_the_limit_close_the_idle_ones():
    settings = ServiceSettings(max_connections=8, head_timeout=60)
    with serving(make_bundle(), settings) as running, sockets(running, 30) as connections:
        assert asks(running) == 200
        assert sum(is_closed(connection, 0.2) for connection in connections) >= 30 - 8


def test_connections_that_send_no_body_or_never_read_make_room_for_others():
    settings = ServiceSettings(max_connections=8, body_timeout=60, send_timeout=60)
    unread = b"GET /static/page.css HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 2_000
    for send in (SLOW_BODY, unread):
        with serving(make_bundle(), settings) as running, sockets(running, 8) as connections:
            for connection in connections:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)  # soon full, on a busy machine too
                connection.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    connection.send(send)
            sample = running.app.state.metrics.registry.get_sample_value
            deadline = time.monotonic() + 30
            while sample("surelabel_requests_now") < 8:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert asks(running) == 200


def test_clients_that_never_read_are_cut_off():
    settings = ServiceSettings(send_timeout=0.5)
    request = b"GET /static/index.html HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with serving(make_bundle(), settings) as running, sockets(running, 4) as connections:
        for connection in connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.setblocking(False)
        deadline = time.monotonic() + 30
        alive = list(connections)
        while alive and time.monotonic() < deadline:
            for connection in list(alive):
                try:
                    connection.send(request * 50)
                except BlockingIOError:
                    pass
                except OSError:
                    alive.remove(connection)
            time.sleep(0.02)
        assert not alive
        assert asks(running) == 200


def test_slow_bodies_do_not_keep_others_out():
    settings = ServiceSettings(max_requests=2, body_timeout=60)
    with serving(make_bundle(), settings) as running, sockets(running, 8, SLOW_BODY):
        assert asks(running) == 200


def test_refused_requests_do_not_count_against_authorised_ones():
    settings = ServiceSettings(max_requests=1, token="a-token-of-some-length")
    with serving(make_bundle(), settings) as running, sockets(running, 8, SLOW_BODY), running.client() as client:
        answer = client.post(
            "/v1/predict", json={"text": "corn"}, headers={"Authorization": "Bearer a-token-of-some-length"}
        )
        assert answer.status_code == 200


def test_a_client_that_hangs_up_is_no_failure(caplog):
    body = json.dumps({"text": "corn"}).encode()
    head = (
        b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    )
    with caplog.at_level(logging.INFO), serving(make_bundle()) as running:
        for sent in (head + body[:4], head + body):
            with sockets(running, 1, sent):
                pass
        assert asks(running) == 200
        time.sleep(0.2)
        with running.client() as client:
            metrics = client.get("/metrics").text
    assert 'status="500"' not in metrics
    assert 'surelabel_requests_total{endpoint="/v1/predict",status="499"} 1.0' in metrics
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    "body",
    [
        b'{"texts":[' + b"0," * 999_999 + b"0]}",
        b"{" + b",".join(b'"k%d":0' % number for number in range(150_000)) + b"}",
        b'{"text":"a","labels":[' + b"0," * 900_000 + b"0]}",
        b'{"text":"a","top":' + b"[" * 900_000 + b"}",
    ],
    ids=["texts", "fields", "labels", "depth"],
)
def test_a_million_wrong_values_are_refused_quickly(body):
    address = "/v1/p-value" if b"labels" in body[:40] else "/v1/predict"
    with serving(make_bundle()) as running, running.client() as client:
        answer = client.post(address, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422)
        assert len(answer.content) < 2_000
        assert "Fix" in answer.json()["error"]["what_to_do"] or answer.status_code == 400


def test_the_description_of_a_service_with_a_token_gives_nothing_away():
    bundle = make_bundle()
    settings = ServiceSettings(token="a-token-of-some-length")
    with serving(bundle, settings) as running, running.client() as client:
        described = client.get("/openapi.json").text
        whole = client.get("/openapi.json", headers={"Authorization": "Bearer a-token-of-some-length"}).text
    assert "topic-42" not in described
    assert "The text to be labelled." in described
    assert "topic-42" in whole


@pytest.mark.parametrize("token", [" token-with-space", "token-with-space\t", "", " "])
def test_a_token_with_outer_spaces_is_refused(token):
    with pytest.raises(Exception, match="without spaces around them"):
        ServiceSettings(token=token)
