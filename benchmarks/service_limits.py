"""The service under load and past its limits, beside another checkout of it and with two workers.

    python benchmarks/service_limits.py --before ../before --out results/service_limits.json [--seconds 30]

Requests per second of 1, 16 and 64 clients; many connections, large requests, clients that hold on. Each checkout
serves a model of the synthetic corpus that it trained itself, in a process of its own on the loopback address; they are
loaded one after the other, scenario by scenario: 200 and 300 connections for so many seconds, the others for at most
ten. All of it takes some nine minutes on a quiet machine. A request counts as answered if it gets 200 within ten
seconds. Everything is bounded in number and time, and the client needs a processor too: compare the columns.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surelabel.experiments.run import machine, versions

HERE = Path(__file__).resolve().parents[1]
PATIENCE = 10.0
TRAIN = """
import sys
from surelabel import corpora
try:
    from surelabel.models import TrainingSettings, train_bundle
except ImportError:
    from surelabel.pipeline import TrainingSettings, train_bundle
corpus = corpora.load("synthetic", n_texts=1200, n_labels=20, seed=0)
train_bundle(corpus, TrainingSettings(compared={})).save(sys.argv[1])
"""
SERVE = """
import json, logging, sys
logging.basicConfig(level=logging.INFO)
from surelabel.service import run
run(sys.argv[1], port=0, **json.loads(sys.argv[2]))
"""


class Served(NamedTuple):
    """A checkout, its model, and settings of its service."""

    tree: Path
    model: Path
    settings: dict[str, Any] = {}  # noqa: RUF012 (never changed)

    @property
    def environment(self) -> dict[str, str]:
        """What makes Python import this checkout."""
        return {**os.environ, "PYTHONPATH": str(self.tree / "src")}

    def train(self) -> None:
        """Train the model."""
        subprocess.run([sys.executable, "-c", TRAIN, self.model], env=self.environment, check=True)


@contextlib.contextmanager
def served(one: Served) -> Iterator[int]:
    """Serve a model of a checkout's own; yield the port."""
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, "-c", SERVE, str(one.model), json.dumps(one.settings)]
        process = subprocess.Popen(command, env=one.environment, stderr=log, text=True)
        try:
            deadline = time.monotonic() + 300
            while True:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("The service did not start.")
                log.seek(0)
                if found := re.search(r"http://127\.0\.0\.1:(\d+)", log.read()):
                    with contextlib.suppress(OSError):
                        urllib.request.urlopen(f"{found.group()}/readyz", timeout=10).close()
                        break
                time.sleep(0.3)
            yield int(found.group(1))
        finally:
            process.terminate()
            try:
                process.wait(90)
            finally:
                process.kill()


def request_of(texts: list[str]) -> bytes:
    """Return a whole HTTP request."""
    body = json.dumps({"texts": texts, "significance": 0.05}).encode()
    head = (
        "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
    )
    return head.format(len(body)).encode() + body


SMALL = request_of(["the price of oil and the harvest of wheat"])
LARGE = request_of(["the price of oil, and the harvest of wheat and corn in the north"] * 256)


class Heard:
    """What clients heard: seconds of answered requests, and how the others ended."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.others: Counter[str] = Counter()

    def figures(self, elapsed: float) -> dict[str, Any]:
        """Return what is told of them."""
        share = len(self.seconds) / max(1, len(self.seconds) + sum(self.others.values()))
        figures: dict[str, Any] = {"answered": len(self.seconds), "share_answered": share, "others": dict(self.others)}
        if self.seconds:
            p50, p99 = np.percentile(self.seconds, [50, 99])
            figures |= {
                "answered_a_second": len(self.seconds) / elapsed,
                "p50_ms": 1e3 * float(p50),
                "p99_ms": 1e3 * float(p99),
                "p99_to_p50": float(p99 / p50),
                "longest_ms": 1e3 * max(self.seconds),
            }
        return figures


async def _one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> str:
    """Send a request and read its answer; return the status."""
    writer.write(request)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(int(re.search(rb"content-length: (\d+)", head.lower()).group(1)))
    return head.split(b" ", 2)[1].decode()


async def client(port: int, request: bytes, until: float, heard: Heard) -> None:
    """Send a request again and again over one connection until a time; connect anew if it breaks."""
    writer: asyncio.StreamWriter | None = None
    while time.perf_counter() < until:
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(PATIENCE):
                if writer is None:
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                status = await _one(reader, writer, request)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, AttributeError) as error:
            heard.others[type(error).__name__] += 1
            if writer is not None:
                writer.close()
            writer = None
            await asyncio.sleep(0.05)
            continue
        if status == "200":
            heard.seconds.append(time.perf_counter() - begun)
        else:
            heard.others[status] += 1
            await asyncio.sleep(0.05)
    if writer is not None:
        writer.close()


@contextlib.asynccontextmanager
async def held(port: int, number: int, first: bytes) -> AsyncIterator[None]:
    """Hold connections open that send something and never read."""
    writers = []
    for _ in range(number):
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(2):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
                reader._transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(first)
                writers.append(writer)
    try:
        yield
    finally:
        for writer in writers:
            writer.transport.abort()


async def scenario(
    port: int, seconds: float, clients: dict[str, tuple[int, bytes]], holding: Any = None
) -> dict[str, Any]:
    """Let groups of clients ask for so long, with others holding on; return figures by group."""
    heard = {name: Heard() for name in clients}
    async with held(port, *holding) if holding else contextlib.nullcontext():
        begun = time.perf_counter()
        until = begun + seconds
        await asyncio.gather(
            *(client(port, what, until, heard[name]) for name, (n, what) in clients.items() for _ in range(n))
        )
        elapsed = time.perf_counter() - begun
    return {name: one.figures(elapsed) for name, one in heard.items()}


def spent(port: int) -> dict[str, float]:
    """Return processor seconds of the server and of its conformal step, and texts, so far; {} of several processes."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        lines = response.read().decode().splitlines()
    values = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}
    names = {"server": "process_cpu", "conformal": "surelabel_conformal_processor"}
    if "process_cpu_seconds_total" not in values:
        return {}
    return {key: values[f"{name}_seconds_total"] for key, name in names.items()} | {
        "texts": values["surelabel_texts_total"]
    }


def shares(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Return the server's processor time per text, and the conformal step's share of it."""
    used = {name: after[name] - before[name] for name in before}
    if not used or not used["texts"]:
        return {}
    return {
        "server_us_per_text": 1e6 * used["server"] / used["texts"],
        "conformal_share": used["conformal"] / used["server"],
    }


UNREAD = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 100
LONG = ("200 connections", "300 connections")
SCENARIOS: dict[str, dict[str, Any]] = {
    "1 client": {"clients": {"small": (1, SMALL)}},
    "16 clients": {"clients": {"small": (16, SMALL)}},
    "64 clients": {"clients": {"small": (64, SMALL)}},
    "200 connections": {"clients": {"small": (200, SMALL)}},
    "300 connections": {"clients": {"small": (300, SMALL)}},
    "16 clients of 256 texts beside 8 of one": {"clients": {"large": (16, LARGE), "small": (8, SMALL)}},
    "400 that never read, beside 8 clients": {"clients": {"small": (8, SMALL)}, "holding": (400, UNREAD)},
    "1,100 idle, beside 8 clients": {"clients": {"small": (8, SMALL)}, "holding": (1_100, b"")},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="another checkout")
    parser.add_argument("--seconds", type=float, default=30.0, help="of 200 and 300 connections")
    parser.add_argument("--only", default="", help="scenarios with this in their name")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        checkouts = (
            {} if options.before is None else {"before": Served(options.before.resolve(), Path(folder, "before"))}
        )
        checkouts["after"] = Served(HERE, Path(folder, "after"))
        for checkout in checkouts.values():
            checkout.train()
        checkouts["after, 2 workers"] = checkouts["after"]._replace(settings={"workers": 2})
        for name, which in itertools.product((name for name in SCENARIOS if options.only in name), checkouts):
            seconds = options.seconds if name in LONG else min(options.seconds, 10.0)
            # A fresh process per scenario: what one leaves behind does not count in the next.
            with served(checkouts[which]) as port:
                asyncio.run(scenario(port, 1.0, {"small": (8, SMALL)}))
                so_far = spent(port)
                figures = asyncio.run(scenario(port, seconds, **SCENARIOS[name]))
                of_server = shares(so_far, spent(port)) if "holding" not in SCENARIOS[name] else {}
            for group, one in figures.items():
                rows.append(
                    {"scenario": name, "checkout": which, "clients": group, "seconds": seconds, **one, **of_server}
                )
                told = f"{one['answered']} answered ({one['share_answered']:.1%})"
                if one["answered"]:
                    times = f"p50 {one['p50_ms']:.0f}, p99 {one['p99_ms']:.0f} ms"
                    told += f", {one['answered_a_second']:.0f} a second, {times}"
                print(f"{name}, {which}, {group}: {told} {one['others'] or ''}", flush=True)
    if options.out:
        document = {
            "settings": {
                "seconds": options.seconds,
                "patience": PATIENCE,
                "versions": versions(),
                "machine": machine(),
            },
            "rows": rows,
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
