"""The extra `service` alone: the page and an answer, over HTTP. Argument: the folder of a model."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

RUN = "import sys; from surelabel import service; service.run(sys.argv[1], '127.0.0.1', int(sys.argv[2]))"
SECONDS = 120


def fetch(url: str, body: object = None) -> bytes:
    """Return what an address answers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


def wait_for(url: str, server: "subprocess.Popen[bytes]") -> None:
    """Wait until the service is ready."""
    end = time.monotonic() + SECONDS
    while True:
        assert server.poll() is None, "the service has ended"
        try:
            fetch(f"{url}/readyz")
        except (urllib.error.URLError, ConnectionError):
            assert time.monotonic() < end, f"the service is not ready after {SECONDS} seconds"
            time.sleep(0.3)
        else:
            return


def main() -> None:
    """Start the service, ask it, end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([sys.executable, "-I", "-c", RUN, sys.argv[1], str(port)])
    try:
        wait_for(url, server)
        assert b"<html" in fetch(url)
        answers = json.loads(fetch(f"{url}/v1/predict", {"texts": ["wheat"], "significance": 0.1}))
        assert len(answers["answers"]) == 1, answers
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
