"""Attacks on the service and on the loader of bundles, bounded in number and time, on the loopback address only.

    python benchmarks/attacks.py [--out results/attacks.json] [--flips 300] [--sockets 200]

A small model is trained and served with a token by a process of its own. Every attack is a number of cases; a case
fails if something happens that must not: an answer without the token, an error of the server's own (5xx but 503), a
service that does not answer others meanwhile, a damaged or forged bundle that is loaded, or one that ends in anything
but ArtifactError. Prints the cases tried and the failures by attack, and ends with 1 if there is one.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from surelabel import corpora, load_bundle
from surelabel._core.folders import own_checksum
from surelabel._core.storage import atomic_file
from surelabel.exceptions import ArtifactError
from surelabel.models import TrainingSettings, train_bundle

TOKEN = "correct-horse-battery-staple"
# Seconds within which others must be answered while an attack is under way, on a machine that may be busy.
PATIENCE = 5.0
GRACE = 5
SERVER = """
import json, logging, sys
logging.basicConfig(level=logging.INFO)
from surelabel.service import run
run(sys.argv[1], port=0, token=sys.argv[2], **json.loads(sys.argv[3]))
"""
LIMITS = {"head_timeout": 2, "body_timeout": 2, "send_timeout": 2, "timeout": GRACE, "max_connections": 128}
PREDICT = json.dumps({"text": "wheat and corn", "significance": 0.1}).encode()


class Attack:
    """Counts the cases of one attack and keeps what failed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.n_cases = 0
        self.failures: list[str] = []

    def case(self, what: str, problem: str | None) -> None:
        """Count a case; `problem` says what went wrong, if anything did."""
        self.n_cases += 1
        if problem is not None:
            self.failures.append(f"{what}: {problem}")


def ask(url: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> int:
    """Return the status of one request."""
    request = urllib.request.Request(url + path, body, {"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}


def others_wait(url: str) -> str | None:
    """Say what is wrong if others are not answered in time."""
    begun = time.perf_counter()
    try:
        statuses = [ask(url, "/healthz"), ask(url, "/v1/predict", PREDICT, AUTHORISED)]
    except OSError as error:
        return f"others are not answered: {error}"
    seconds = time.perf_counter() - begun
    if statuses != [200, 200]:
        return f"others get {statuses}"
    return f"others wait {seconds:.1f} s" if seconds > PATIENCE else None


def without_the_token(url: str) -> Attack:
    """Try to get answers with headers that look like the token."""
    attack = Attack("requests without the token")
    basic = base64.b64encode(b"user:" + TOKEN.encode()).decode()
    tricks = ["", "Bearer", "Bearer ", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Bearer {TOKEN.upper()}"]
    tricks += [f"Token {TOKEN}", TOKEN, f"Basic {basic}", f'Bearer "{TOKEN}"', f"Bearer {TOKEN},{TOKEN}"]
    tricks += [
        f"Bearer {TOKEN}%00",
        f"Bearer\t\t{TOKEN}\tx",
        "Bearer None",
        "Bearer null",
        "Bearer *",
        "Bearer ' or ''='",
    ]
    paths = [("/v1/predict", PREDICT), ("/v1/p-value", b'{"text": "a", "labels": ["oil"]}'), ("/v1/model", None)]
    for path, body in paths:
        for trick in tricks:
            status = ask(url, path, body, {"Authorization": trick} if trick else {})
            attack.case(f"{path} with {trick!r}", None if status == 401 else f"got {status}")
    for path in ("/metrics", "/report"):
        for trick in (trick for trick in tricks if not trick.startswith("Basic")):
            status = ask(url, path, None, {"Authorization": trick} if trick else {})
            attack.case(f"{path} with {trick!r}", None if status == 401 else f"got {status}")
    return attack


def wrong_bodies(url: str) -> Attack:
    """Send bodies that are not requests, some of them large."""
    attack = Attack("bodies that are not requests")
    bodies = [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b"\xff\xfe",
        b"\x00",
        b'{"text": 1}',
        b'{"texts": "x"}',
        b'{"texts": []}',
    ]
    bodies += [b'{"text": "a", "text": "b", "texts": ["c"]}', b'{"text": "a", "significance": NaN}']
    bodies += [
        b'{"text": "a", "significance": %s}' % level for level in (b"2", b"-1", b'"x"', b"[]", b"1e400", b'"1/0"')
    ]
    bodies += [b'{"text": "a", "top": %s}' % top for top in (b"-1", b"1e9", b'"5"', b"null", b"1" * 400)]
    bodies += [
        b'{"text": "a", "unknown": 1}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"text": "' + b"a" * 3_000_000 + b'"}',
    ]
    bodies += [b'{"texts":[' + b"0," * 999_999 + b"0]}", json.dumps({"texts": ["a"] * 100_000}).encode()]
    bodies += [json.dumps({"text": "\ud800"}).encode(), b'{"text": "' + b"\\u0000" * 1000 + b'", "top": "x"}']
    for number, body in enumerate(bodies):
        try:
            status = ask(url, "/v1/predict", body, AUTHORISED)
        except OSError:
            status = 413  # a body that is too large is not read to its end
        fine = status == 200 or (400 <= status < 500)
        attack.case(f"body {number} ({body[:30]!r})", (None if fine else f"got {status}") or others_wait(url))
    return attack


def other_places(url: str) -> Attack:
    """Ask for files that are not the service's, and for other hosts."""
    attack = Attack("other files and hosts")
    for path in (
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/....//x",
        "/report/../../etc/passwd",
        "/static/index.html%00.js",
        "/%2e%2e/%2e%2e/etc/passwd",
    ):
        status = ask(url, path, None, AUTHORISED)
        attack.case(path, None if status in {400, 404} else f"got {status}")
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil", "", "[::2]", "127.0.0.1@evil.example"):
        status = ask(url, "/v1/model", None, {**AUTHORISED, "Host": host})
        attack.case(f"host {host!r}", None if status in {400, 421} else f"got {status}")
    return attack


@contextlib.contextmanager
def sockets(url: str, number: int, first: bytes) -> Iterator[list[socket.socket]]:
    """Open connections that send something and then nothing."""
    port = int(url.rpartition(":")[2])
    with contextlib.ExitStack() as opened:
        made = []
        for _ in range(number):
            one = opened.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(5)
            with contextlib.suppress(OSError):
                one.connect(("127.0.0.1", port))
                if first:
                    one.sendall(first)
            made.append(one)
        yield made


def bad_connections(url: str, number: int) -> Attack:
    """Hold connections open in several ways, and see whether others are answered meanwhile."""
    attack = Attack("connections that hold on")
    head = b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    authorised = f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n".encode()
    get = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    ways = {
        "silent": b"",
        "half a head": head,
        "a body that does not come": head + b"Content-Length: 1000\r\n\r\n{",
        "the same with the token": head + authorised + b"Content-Length: 1000\r\n\r\n{",
        "a chunk that does not come": head + authorised + b"Transfer-Encoding: chunked\r\n\r\n400\r\n{",
        "requests whose answers are not read": get * 50,
        "two lengths": head + b"Content-Length: 5\r\nContent-Length: 50\r\n\r\nhello",
        "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
        "an endless head": head + b"X: " + b"a" * 100_000,
    }
    for way, first in ways.items():
        with sockets(url, number, first) as made:
            problem = others_wait(url)
            for _ in made:
                attack.case(way, problem)
                problem = None
    for _ in range(number):  # hang up while the answer is computed, with a reset
        with sockets(url, 1, head + authorised + f"Content-Length: {len(PREDICT)}\r\n\r\n".encode() + PREDICT) as (
            one,
        ):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        attack.case("hanging up", None)
    attack.case("after all of it", others_wait(url))
    with urllib.request.urlopen(urllib.request.Request(f"{url}/metrics", headers=AUTHORISED), timeout=20) as response:
        failed = [
            line for line in response.read().decode().splitlines() if re.search(r'_requests_total.*status="500"', line)
        ]
    attack.case("no error of the server's own", failed[0] if failed else None)
    return attack


def stopping(process: subprocess.Popen[str], url: str, number: int) -> Attack:
    """Ask the service to stop while connections hold on."""
    attack = Attack("stopping under attack")
    head = f"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    with sockets(url, number, head + b"Content-Length: 1000\r\n\r\n{"):
        begun = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(GRACE + 10)
            attack.case(
                "SIGTERM", None if process.returncode in {0, -signal.SIGTERM} else f"ended with {process.returncode}"
            )
        except subprocess.TimeoutExpired:
            attack.case("SIGTERM", f"still there after {time.perf_counter() - begun:.0f} s")
    return attack


@contextlib.contextmanager
def served(bundle: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a bundle in a process of its own; yield process and address."""
    command = [sys.executable, "-c", SERVER, str(bundle), TOKEN, json.dumps(LIMITS)]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stderr=log, text=True)
        try:
            deadline = time.monotonic() + 180
            url = None
            while time.monotonic() < deadline and process.poll() is None:
                log.seek(0)
                if found := re.search(r"http://127\.0\.0\.1:\d+", log.read()):
                    url = found.group()
                    with contextlib.suppress(OSError):
                        if ask(url, "/readyz") == 200:
                            break
                time.sleep(0.2)
            if url is None:
                raise SystemExit("The service did not start.")
            yield process, url
            log.seek(0)
            if "Traceback" in (written := log.read()):
                raise SystemExit(f"The service wrote a traceback:\n{written[-2000:]}")
        finally:
            process.kill()
            process.wait()


def loads(folder: Path) -> str | None:
    """Say what is wrong if a bad bundle is loaded, or is refused by another error."""
    try:
        load_bundle(folder)
    except ArtifactError:
        return None
    except Exception as error:
        return f"ended in {type(error).__name__}: {error}"
    return "was loaded"


def list_anew(folder: Path) -> None:
    """Write the sums of changed files into the lists, as one who changes a bundle on purpose would."""

    def update(description: Path, root: Path) -> None:
        document = json.loads(description.read_text())
        for name in document["files"]:
            content = (root / name).read_bytes()
            document["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        document["sha256"] = own_checksum(document)
        description.write_text(json.dumps(document))

    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # of a description that is none any more
        update(folder / "classifier" / "classifier.json", folder / "classifier")
    update(folder / "bundle.json", folder)


def damaged_bundles(bundle: Path, flips: int) -> Attack:
    """Flip bytes, cut files, remove, add and link some."""
    attack = Attack("damaged bundles")
    rng = np.random.default_rng(0)
    files = sorted(path.relative_to(bundle) for path in bundle.rglob("*") if path.is_file())
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "model"

        def case(what: str, change: Callable[[], Any]) -> None:
            shutil.copytree(bundle, copy)
            change()
            attack.case(what, loads(copy))
            shutil.rmtree(copy)

        def flip(file: Path, place: int, bit: int) -> None:
            content = bytearray((copy / file).read_bytes())
            content[place] ^= 1 << bit
            (copy / file).write_bytes(content)

        for _ in range(flips):
            file = files[rng.integers(len(files))]
            place, bit = int(rng.integers((bundle / file).stat().st_size)), int(rng.integers(8))
            case(f"{file}, bit {bit} of byte {place}", lambda f=file, p=place, b=bit: flip(f, p, b))
        for file in files:
            case(f"{file} cut", lambda f=file: os.truncate(copy / f, (copy / f).stat().st_size // 2))
            case(f"{file} removed", lambda f=file: (copy / f).unlink())
            case(f"{file} a link", lambda f=file: ((copy / f).unlink(), (copy / f).symlink_to(bundle / f)))
        case("a file too many", lambda: (copy / "run.py").write_text("print('run')"))
        case("a pipe", lambda: os.mkfifo(copy / "pipe"))
    return attack


def forged_bundles(bundle: Path) -> Attack:
    """Change contents and sums alike: what a stranger may send."""
    attack = Attack("forged bundles")
    contents = [b"", b"1", b"null", b"{}", b"[1]", b'[["a"]]', b'["a", "a"]', b"[" * 100_000, b'{"a": 1e999}', b"\xff"]
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "model"

        def case(what: str, change: Callable[[], Any]) -> None:
            shutil.copytree(bundle, copy)
            change()
            list_anew(copy)
            attack.case(what, loads(copy))
            shutil.rmtree(copy)

        for file in (
            "classifier/vocabulary.json",
            "evaluation.json",
            "predictor.npz",
            "classifier/linear.npz",
            "texts.npz",
        ):
            for content in contents:
                if (file, content) != ("evaluation.json", b"{}"):  # no figures at all is allowed
                    case(f"{file} = {content[:20]!r}", lambda f=file, c=content: (copy / f).write_bytes(c))
        for file in ("predictor.npz", "classifier/linear.npz"):
            with np.load(bundle / file) as archive:
                arrays = dict(archive)
            for key, array in arrays.items():
                forged = {
                    "object": np.array([None], dtype=object),
                    "text": np.array(["x"]),
                    "more": np.zeros((3, 3, 3)),
                }
                if array.dtype.kind == "f" and array.size and key not in {"fixed"}:
                    bad = array.astype(array.dtype)
                    bad.flat[0] = np.nan
                    forged["nan"] = bad
                for kind, value in forged.items():
                    case(
                        f"{file}: {key} {kind}",
                        lambda f=file, k=key, v=value, a=arrays: np.savez(copy / f, allow_pickle=True, **{**a, k: v}),
                    )
            case(f"{file}: declared larger than it is", lambda f=file: (copy / f).write_bytes(_bomb()))
    return attack


def _bomb() -> bytes:
    """Return a small archive with an array that says that it has 10 GB."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1342177280,), }"
    header += b" " * (64 - (len(header) + 11) % 64) + b"\n"
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("totals.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    return held.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON with the numbers of cases and the failures")
    parser.add_argument("--flips", type=int, default=300, help="bits to flip in bundles")
    parser.add_argument("--sockets", type=int, default=200, help="connections that hold on at once")
    options = parser.parse_args()
    attacks: list[Attack] = []

    def report(attack: Attack) -> None:
        attacks.append(attack)
        print(f"{attack.name}: {attack.n_cases} cases, {len(attack.failures)} failures", flush=True)
        for failure in attack.failures[:10]:
            print(f"  {failure}", flush=True)

    with tempfile.TemporaryDirectory() as name:
        corpus = corpora.load("synthetic", n_texts=600, n_labels=8, seed=0)
        bundle = train_bundle(corpus, TrainingSettings(compared={})).save(Path(name) / "model")
        report(damaged_bundles(bundle, options.flips))
        report(forged_bundles(bundle))
        with served(bundle) as (process, url):
            report(without_the_token(url))
            report(wrong_bodies(url))
            report(other_places(url))
            report(bad_connections(url, options.sockets))
            report(stopping(process, url, min(100, options.sockets)))
    n_cases, n_failures = sum(a.n_cases for a in attacks), sum(len(a.failures) for a in attacks)
    print(f"In all: {n_cases:,} cases, {n_failures} failures.")
    if options.out:
        rows = [{"attack": a.name, "cases": a.n_cases, "failures": a.failures} for a in attacks]
        with atomic_file(options.out) as temporary:
            temporary.write_text(
                json.dumps({"command": sys.argv[1:], "attacks": rows}, indent=1) + "\n", encoding="utf-8"
            )
    sys.exit(1 if n_failures else 0)


if __name__ == "__main__":
    main()
