"""A real Annif on EURLEX57K, made safe: figures of `annif eval` beside those of `surelabel evaluate`.

    python -m venv ANNIF && ANNIF/bin/pip install annif==1.4.3 omikuji==0.5.2
    python benchmarks/annif.py --data eurlex57k.jsonl.xz --concepts eurlex57k-concepts.json.gz --annif ANNIF/bin \
        --folder WORK --out results/annif.json

Annif learns an omikuji project from the file's "train" part, with EuroVoc as its vocabulary, and serves it on the
loopback address. Surelabel makes it safe with the "dev" part and measures on the "test" part. The server is killed
once in the middle of a training; the same command then continues. Annif splits sentences with data of NLTK that only
the web has. An empty Punkt model stands in where it is missing: words are split as with the real one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PROJECT, URI = "eurlex-omikuji", "http://eurovoc.europa.eu/"
CONFIG = f"""\
[{PROJECT}]
name = EURLEX57K by omikuji
language = en
backend = omikuji
analyzer = snowball(english)
vocab = eurovoc
limit = 100
min_df = 2
"""
PUNKT = ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab")


def write_inputs(data: Path, concepts: Path, folder: Path) -> None:
    """Write the vocabulary as SKOS, the three parts as Annif's TSV, and Annif's configuration."""
    lines = ["@prefix skos: <http://www.w3.org/2004/02/skos/core#> ."]
    with gzip.open(concepts, "rt", encoding="utf-8") as file:
        for uri, concept in json.load(file).items():
            facts = [f"skos:prefLabel {json.dumps(concept['label'])}@en"]
            facts += [f"skos:altLabel {json.dumps(name)}@en" for name in concept["alt_labels"]]
            facts += [f"skos:broader <{URI}{parent}>" for parent in concept["parents"]]
            lines.append(f"<{URI}{uri}> a skos:Concept ; {' ; '.join(facts)} .")
    (folder / "eurovoc.ttl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    parts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    with lzma.open(data, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            text = " ".join(f"{row['title']} {row['text']}".split())
            parts[row["part"]].append(f"{text}\t{' '.join(f'<{URI}{label}>' for label in row['labels'])}\n")
    for name, rows in parts.items():
        (folder / f"{name}.tsv").write_text("".join(rows), encoding="utf-8")
    (folder / "projects.cfg").write_text(CONFIG)
    punkt = folder / "nltk_data/tokenizers/punkt_tab/english"
    punkt.mkdir(parents=True, exist_ok=True)
    for name in PUNKT:
        (punkt / name).touch()


def run(command: list[Any], folder: Path, *, may_fail: bool = False) -> tuple[str, dict[str, Any]]:
    """Run a command; return its output, and its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(
        list(map(str, command)), check=False, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode and not may_fail:
        raise SystemExit(f"{command} ended with {done.returncode}")
    return done.stdout, {
        "status": done.returncode,
        "processor_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "seconds": round(time.perf_counter() - started, 1),
    }


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of all commands: caches and NLTK's data in the work folder."""
    return {**os.environ, "NLTK_DATA": str(folder / "nltk_data"), "SURELABEL_CACHE": str(folder / "cache")}


class Server:
    """An Annif server on the loopback address, by uvicorn as Annif's own pages run it."""

    def __init__(self, annif: Path, folder: Path, port: int) -> None:
        command = [annif / "annif", "run", "--host", "127.0.0.1", "--port", str(port)]
        self._log = (folder / "server.log").open("a")
        self._process = subprocess.Popen(
            list(map(str, command)),
            cwd=folder,
            env=environment(folder),
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self.url = f"http://127.0.0.1:{port}"
        while self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/v1/projects/{PROJECT}") as answer:
                    json.load(answer)
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(1)
        raise SystemExit("The Annif server ended. See server.log.")

    def n_answered(self, folder: Path) -> int:
        """Return how many batches the server has answered."""
        return (folder / "server.log").read_text(errors="replace").count("suggest-batch")

    def kill(self) -> None:
        """End the server and its workers at once."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def train_annif(annif: Path, folder: Path) -> dict[str, Any]:
    """Load the vocabulary, train the project, and return the figures of `annif eval` on the test part."""
    steps = {}
    command = annif / "annif"
    if not (folder / "data/projects" / PROJECT / "omikuji-model").exists():
        _, steps["load-vocab"] = run([command, "load-vocab", "eurovoc", "eurovoc.ttl"], folder)
        _, steps["train"] = run([command, "train", PROJECT, "train.tsv", "-j", "2"], folder)
    _, steps["eval"] = run([command, "eval", PROJECT, "test.tsv", "-M", "eval.json"], folder)
    return {"steps": steps, "figures": json.loads((folder / "eval.json").read_text())}


def make_safe(annif: Path, folder: Path, seed: int) -> dict[str, Any]:
    """Train with the server killed in the middle, continue, evaluate and predict; return all figures."""
    python, model, port = [sys.executable, "-m", "surelabel"], f"model-{seed}", free_port()
    tagger = ["--tagger", "annif", "--url", f"http://127.0.0.1:{port}", "--project", PROJECT]
    train = [*python, "train", "dev.tsv", *tagger, "--vocabulary", "eurovoc.ttl", "--out", model, "--seed", seed]
    steps: dict[str, Any] = {}
    shutil.rmtree(folder / "cache", ignore_errors=True)  # answers of an earlier run: nothing would be asked
    server = Server(annif, folder, port)
    before = server.n_answered(folder)
    started = subprocess.Popen(
        list(map(str, [*train, "--setting", "retries=1"])),
        cwd=folder,
        env=environment(folder),
        stderr=subprocess.PIPE,
        text=True,
    )
    while started.poll() is None and server.n_answered(folder) < before + 10:
        time.sleep(0.2)
    server.kill()
    said = (started.communicate()[1] or "").strip().splitlines()
    answered = server.n_answered(folder) - before
    server = Server(annif, folder, port)
    try:
        printed, steps["train"] = run([*train, "--setting", "retries=1"], folder)
        n_after = server.n_answered(folder) - before - answered
        evaluated, steps["evaluate"] = run([*python, "evaluate", model, "test.tsv", "--json"], folder)
        _, steps["predict"] = run([*python, "predict", model, "test.tsv", "--out", "answers.jsonl"], folder)
    finally:
        server.kill()
    shown = json.loads(evaluated)
    return {
        "seed": seed,
        "killed": {
            "status": started.returncode,
            "said": re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", said[-1]) if said else "",
            "batches_before": answered,
            "batches_after": n_after,
        },
        "printed": printed.splitlines(),
        "steps": steps,
        "ranks": shown["ranks"],
        **{name: shown[name] for name in ("n_texts", "n_unknown", "left_out", "errors", "decisions")},
        "n_answers": sum(1 for _ in (folder / "answers.jsonl").open(encoding="utf-8")),
    }


def main() -> None:
    """Measure, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("data", "concepts", "annif", "folder", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only-annif", action="store_true", help="stop after `annif eval`")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "projects.cfg").exists():
        write_inputs(asked.data, asked.concepts, folder)
    document: dict[str, Any] = {"command": re.sub(r"/\S+/", "", " ".join(sys.argv))}
    kept = folder / "annif.json"
    if not kept.exists():
        kept.write_text(json.dumps(train_annif(asked.annif.resolve(), folder)))
    document["annif"] = json.loads(kept.read_text())
    if asked.only_annif:
        return
    document["surelabel"] = [make_safe(asked.annif.resolve(), folder, seed) for seed in range(asked.seeds)]
    own = document["annif"]["figures"]
    document["agreement"] = {
        name: {"annif": own[name], "surelabel": document["surelabel"][0]["ranks"][name]} for name in ("F1@5", "NDCG@10")
    }
    asked.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
