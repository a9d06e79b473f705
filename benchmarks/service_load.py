"""The service under load: requests per second and their times, with and without micro-batching.

    python benchmarks/service_load.py --out results/service.json [--reuters PATH] [--seconds 8]

A linear model on Reuters (trained once, kept in the cache folder) is served on the loopback address by a second
process. Clients of one connection each send one text per request, the next when the answer is there. Micro-batching is
turned off by batches of one text; the two are run in turns, and compared in the same run. One client asks for
descriptions too. What the conformal step takes is read from the service's metrics, as a share of two things: of the
processor time of the server, and of the time of classifier and conformal step alone, without HTTP and JSON.

The client needs a processor too: figures are of a machine that does both.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from probabilities import corpus_to_measure
from surelabel import __version__, load_bundle
from surelabel._core.storage import atomic_file
from surelabel.corpora import cache_folder
from surelabel.exceptions import ArtifactError
from surelabel.experiments.run import machine, versions
from surelabel.models import TrainingSettings, train_bundle

CLIENTS = (1, 16, 64)
BATCHING = {"with": {}, "without": {"max_batch_texts": 1}}
TOP = 5
GOAL = 0.05
SERVER = """
import json, logging, sys
logging.basicConfig(level=logging.INFO)
from surelabel.service import run
run(sys.argv[1], port=0, **json.loads(sys.argv[2]))
"""


def served_bundle(corpus: Any) -> Path:
    """Return the folder of the model, trained if it is not in the cache yet."""
    folder = cache_folder().parent / "benchmarks" / f"service-{__version__}-logloss-{corpus.fingerprint()[:16]}"
    with contextlib.suppress(ArtifactError):
        load_bundle(folder)
        return folder
    print(f"training the linear model on {corpus.name}", flush=True)
    return train_bundle(corpus, TrainingSettings(compared={})).save(folder)


@contextlib.contextmanager
def server(bundle: Path, settings: dict[str, Any]) -> Iterator[str]:
    """Serve a bundle in a process of its own; yield its address."""
    command = [sys.executable, "-c", SERVER, str(bundle), json.dumps(settings)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = None
        for line in process.stderr:
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                break
        if not found:
            raise SystemExit("The service did not start.")
        wait_until_ready(found.group())
        yield found.group()
    finally:
        process.terminate()
        process.communicate(timeout=30)


def wait_until_ready(url: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{url}/readyz", timeout=10).close()
            return
        time.sleep(0.1)
    raise SystemExit("The service did not get ready.")


def metrics(url: str) -> dict[str, float]:
    """Return the sums and counts that the service tells Prometheus."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as response:
        lines = response.read().decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def requests_of(texts: list[str], **more: Any) -> list[bytes]:
    """Return texts as whole HTTP requests."""
    bodies = (json.dumps({"text": text, "significance": 0.05, "top": TOP, **more}).encode() for text in texts)
    head = (
        "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
    )
    return [head.format(len(body)).encode() + body for body in bodies]


async def client(port: int, requests: list[bytes], start: int, until: float, seconds: list[float]) -> None:
    """Send requests over one connection, one after the other, until a time; note how long each took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = start
    while time.perf_counter() < until:
        begun = time.perf_counter()
        writer.write(requests[number % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise SystemExit(f"The service answered {head.splitlines()[0]!r}.")
        await reader.readexactly(int(re.search(rb"content-length: (\d+)", head).group(1)))
        seconds.append(time.perf_counter() - begun)
        number += 1
    writer.close()
    await writer.wait_closed()


def load(url: str, requests: list[bytes], n_clients: int, duration: float) -> list[float]:
    """Let clients send requests for so many seconds; return the time of each request."""
    port = int(url.rpartition(":")[2])
    seconds: list[float] = []
    steps = range(0, len(requests), max(1, len(requests) // n_clients))

    async def all_clients() -> None:
        until = time.perf_counter() + duration
        await asyncio.gather(*(client(port, requests, steps[i], until, seconds) for i in range(n_clients)))

    asyncio.run(all_clients())
    return seconds


def measure(url: str, requests: list[bytes], n_clients: int, duration: float) -> dict[str, float]:
    """Return the figures of one load."""
    load(url, requests, n_clients, min(1.0, duration))
    before, begun = metrics(url), time.perf_counter()
    seconds = load(url, requests, n_clients, duration)
    elapsed, after = time.perf_counter() - begun, metrics(url)

    def spent(name: str) -> float:
        return after[name] - before[name]

    conformal, classifier = spent("surelabel_conformal_seconds_sum"), spent("surelabel_classifier_seconds_sum")
    return {
        "requests": len(seconds),
        "requests_a_second": len(seconds) / elapsed,
        "p50_ms": 1e3 * float(np.percentile(seconds, 50)),
        "p99_ms": 1e3 * float(np.percentile(seconds, 99)),
        "mean_batch_texts": spent("surelabel_batch_texts_sum") / spent("surelabel_batch_texts_count"),
        "conformal_ms": 1e3 * conformal / len(seconds),
        "classifier_ms": 1e3 * classifier / len(seconds),
        "server_ms": 1e3 * spent("process_cpu_seconds_total") / len(seconds),
        "conformal_share": spent("surelabel_conformal_processor_seconds_total") / spent("process_cpu_seconds_total"),
        "conformal_share_of_computing": conformal / (conformal + classifier),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/service.json"))
    parser.add_argument("--reuters", help="the official archive, if you have it")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each of the seven loads")
    options = parser.parse_args()
    corpus = corpus_to_measure(options.reuters)
    bundle = served_bundle(corpus)
    texts = list(corpus.part("test").texts[:1_000])
    requests = requests_of(texts)
    rows = []
    with contextlib.ExitStack() as running:
        urls = {name: running.enter_context(server(bundle, settings)) for name, settings in BATCHING.items()}
        for n_clients in CLIENTS:
            found = {name: measure(url, requests, n_clients, options.seconds) for name, url in urls.items()}
            ratio = found["with"]["requests_a_second"] / found["without"]["requests_a_second"]
            rows += [{"clients": n_clients, "micro_batching": name, **figures} for name, figures in found.items()]
            for name, figures in found.items():
                print(
                    f"{n_clients:3d} clients, {name:7s} micro-batching: {figures['requests_a_second']:7.1f} a second, "
                    f"p50 {figures['p50_ms']:6.1f} ms, p99 {figures['p99_ms']:6.1f} ms, "
                    f"batches of {figures['mean_batch_texts']:4.1f}, conformal step "
                    f"{figures['conformal_share']:.1%} of the server's processor time, "
                    f"{figures['conformal_share_of_computing']:.1%} of computing"
                )
            print(f"{n_clients:3d} clients: {ratio:.2f} times the requests with micro-batching", flush=True)
        described = measure(urls["with"], requests_of(texts, describe=True), 1, options.seconds)
        rows.append({"clients": 1, "micro_batching": "with", "describe": True, **described})
        print(f"  1 client with descriptions: conformal step {described['conformal_share']:.1%}", flush=True)
    document = {
        "settings": {
            "source": f"{corpus.name}, linear classifier, LogLoss",
            "significance": "0.05",
            "top": TOP,
            "seconds": options.seconds,
            "goal_conformal_share": GOAL,
        },
        "versions": versions(),
        "machine": machine(),
        "rows": rows,
    }
    with atomic_file(options.out) as temporary:
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
