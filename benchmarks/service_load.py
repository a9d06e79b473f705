"""The service under load beside another checkout of this project: the two take turns.

    python benchmarks/service_load.py --before PATH [--turns 7] [--seconds 4] [--out results/service.json]

Each version trains a linear model of its own (`LogLoss`) and serves it in a process of its own on the loopback
address. Clients with one connection each send one text per request at significance 0.05, the next when the answer is
there. `ratio` is the median, over the turns, of this version's requests per second by the other's, so that other work
on the machine changes it little; `server_ms` is the processor time of the server per request. The client needs a
processor too: figures are of a machine that does both.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np

from surelabel import corpora

HERE = Path(__file__).resolve().parents[1]
SETTINGS = {"significance": 0.05, "top": 5}
# The first form is of versions before `surelabel.train`.
TRAIN = """
import sys
from surelabel import corpora, models
if hasattr(models, "train_bundle"):
    models.train_bundle(corpora.load(sys.argv[1]), models.TrainingSettings(compared={})).save(sys.argv[2])
else:
    models.train(corpora.load(sys.argv[1]), sys.argv[2], measure="log-loss")
"""
SERVE = """
import logging, sys
logging.basicConfig(level=logging.INFO)
from surelabel import service
if hasattr(service, "run"):
    service.run(sys.argv[1], port=0)
else:
    service.serve(sys.argv[1], service.ServiceSettings(port=0))
"""


def run(tree: Path, code: str, *arguments: str, **options: object) -> subprocess.Popen[str]:
    """Start Python with the package of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment, text=True, **options)


@contextlib.contextmanager
def served(tree: Path, model: Path) -> Iterator[tuple[int, int]]:
    """Serve a model of a checkout; yield port and process once it is ready."""
    with tempfile.TemporaryFile("w+") as log:
        process = run(tree, SERVE, str(model), stderr=log)
        try:
            found = None
            while found is None or not is_ready(found.group()):
                if process.poll() is not None:
                    log.seek(0)
                    raise SystemExit(f"The service did not start:\n{log.read()}")
                time.sleep(0.2)
                log.seek(0)
                found = re.search(r"http://127\.0\.0\.1:(\d+)", log.read())
            yield int(found.group(1)), process.pid
        finally:
            process.terminate()
            process.wait()


def is_ready(url: str) -> bool:
    """Whether a service answers without delay."""
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/readyz", timeout=10):
        return True
    return False


def processor_seconds(process: int) -> float:
    """Return the processor time of a process so far (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def request_of(text: str) -> bytes:
    """Return a whole HTTP request about a text."""
    body = json.dumps({"text": text, **SETTINGS}).encode()
    head = "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length:"
    return f"{head} {len(body)}\r\n\r\n".encode() + body


async def client(port: int, requests: list[bytes], start: int, until: float, seconds: list[float]) -> None:
    """Send requests over one connection, one after the other, until a time; note how long each took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = start
    begun = 0.0
    while begun == 0.0 or time.perf_counter() < until:  # at least one, however busy the machine is
        begun = time.perf_counter()
        writer.write(requests[number % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise SystemExit(f"The service answered {head.splitlines()[0]!r}.")
        await reader.readexactly(int(re.search(rb"content-length: (\d+)", head.lower()).group(1)))
        seconds.append(time.perf_counter() - begun)
        number += 1
    writer.close()


def load(service: tuple[int, int], requests: list[bytes], n_clients: int, duration: float) -> dict[str, float]:
    """Let clients send requests for a time; return the figures of this load."""
    port, process = service
    seconds: list[float] = []

    async def all_clients() -> None:
        until = time.perf_counter() + duration
        starts = range(0, len(requests), max(1, len(requests) // n_clients))
        await asyncio.gather(*(client(port, requests, starts[i], until, seconds) for i in range(n_clients)))

    begun, spent = time.perf_counter(), processor_seconds(process)
    asyncio.run(all_clients())
    p50, p99 = np.percentile(seconds, [50, 99])
    return {
        "a_second": len(seconds) / (time.perf_counter() - begun),
        "p50_ms": 1e3 * p50,
        "p99_ms": 1e3 * p99,
        "server_ms": 1e3 * (processor_seconds(process) - spent) / len(seconds),
    }


def main() -> None:
    """Measure both versions in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="another checkout")
    parser.add_argument("--corpus", default="reuters", help="a name of surelabel data list")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each load")
    parser.add_argument("--models", type=Path, help="folder to keep the models in")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "service.json")
    options = parser.parse_args()
    texts = corpora.load(options.corpus).part("test").texts[:1_000]
    requests, rows = [request_of(text) for text in texts], []
    with contextlib.ExitStack() as stack:
        folder = options.models or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        trees, services = {"before": options.before.resolve(), "now": HERE}, {}
        for name, tree in trees.items():
            model = folder / name
            if not model.exists() and run(tree, TRAIN, options.corpus, str(model)).wait():
                raise SystemExit(f"{tree} made no model.")
            services[name] = stack.enter_context(served(tree, model))
        for n_clients in options.clients:
            for service in services.values():
                load(service, requests, n_clients, 1.0)
            turns = [
                {name: load(service, requests, n_clients, options.seconds) for name, service in services.items()}
                for _ in range(options.turns)
            ]
            ratios = [turn["now"]["a_second"] / turn["before"]["a_second"] for turn in turns]
            figures = {
                name: {key: median(turn[name][key] for turn in turns) for key in turns[0][name]} for name in services
            }
            rows.append({"clients": n_clients, "ratio": median(ratios), "ratios": ratios, **figures})
            shown = ", ".join(
                f"{name} {one['a_second']:.0f} a second ({one['server_ms']:.1f} ms)" for name, one in figures.items()
            )
            print(f"{n_clients} clients: {shown}; ratio {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    document = {
        "settings": {"corpus": options.corpus, "turns": options.turns, "seconds": options.seconds, **SETTINGS},
        "machine": {"processors": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}
        | {"load_average": os.getloadavg()[0]},
        "rows": rows,
    }
    options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
