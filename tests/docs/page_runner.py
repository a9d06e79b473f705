"""Run the code of a page from top to bottom in an empty folder, and compare what it prints.

- `python` and `pycon` share one namespace a page. A line of `bash` is a command, which must succeed, or end with the
  code of a comment `# exits N`. A command that ends in `&` is a server: it must answer before the page goes on.
- A block with `title="output"` is what the block before it must have printed; `...` stands for any text. Any other
  title is the name of a file that the block is written to.
- `make X` and `pip install` are only checked: the target and the extras must exist.

With UPDATE_PAGES=1 in the environment, outputs are written into the page instead of compared.
"""

import contextlib
import csv
import doctest
import functools
import io
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

from surelabel import corpora

ROOT = Path(__file__).parents[2]
SECONDS = 900  # for a command that hangs; machines are busy
_FENCE = re.compile(r'^```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.M | re.S)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_EXITS = re.compile(r"#\s*exits (\d+)\s*$")


def pages():
    """Return the paths of README and all pages of the site, from the project's root."""
    return ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]


def write_example_files(folder):
    """Write tickets.csv (id, body, tags) and new.csv (id, body), which pages may use."""
    for name, n_texts, seed in (("tickets.csv", 900, 1), ("new.csv", 20, 2)):
        corpus = corpora.load("synthetic", n_texts=n_texts, n_labels=12, seed=seed)
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("id", "body", "tags") if seed == 1 else ("id", "body"))
            for number, (text, labels) in enumerate(zip(corpus.texts, corpus.label_sets, strict=True), start=1):
                row = (f"{name[:3]}-{number}", text)
                writer.writerow((*row, ";".join(sorted(labels))) if seed == 1 else row)


def write_programs(folder):
    """Write the program `annif`, which is no requirement of the tests; return its folder."""
    program = folder / ".bin/annif"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).with_name("annif.py")}" "$@"\n')
    program.chmod(0o755)
    return program.parent


def run_page(page, folder, monkeypatch):
    """Run all blocks of a page in a folder."""
    write_example_files(folder)
    monkeypatch.chdir(folder)
    surroundings = {
        "PATH": os.pathsep.join([*map(str, (Path(sys.executable).parent, write_programs(folder))), os.environ["PATH"]]),
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "MPLBACKEND": "Agg",
        "HF_HUB_OFFLINE": "1",
        "SURELABEL_DATA": str(folder / ".data"),
    }
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    markdown, run, updated, start = (ROOT / page).read_text(encoding="utf-8"), _Page(folder), "", 0
    try:
        for block in _FENCE.finditer(markdown):
            output = run.do(block["language"], block["title"], block["text"])
            if output is not None:
                updated += markdown[start : block.start("text")] + output
                start = block.end("text")
    finally:
        run.end_servers()
    if os.environ.get("UPDATE_PAGES"):
        (ROOT / page).write_text(updated + markdown[start:], encoding="utf-8")


class _Page:
    def __init__(self, folder):
        self.folder, self.printed, self.namespace, self.servers = folder, "", {"__name__": "__main__"}, []
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])

    def do(self, language, title, text):
        """Run or write a block; return what was printed if the page says something else and may be updated."""
        if title == "output":
            printed = self.printed.replace(self.port, "8000")
            is_same = doctest.OutputChecker().check_output(text, printed, _FLAGS)
            assert is_same or os.environ.get("UPDATE_PAGES"), f"expected:\n{text}\ngot:\n{printed}"
            return None if is_same else printed
        text = text.replace("8000", self.port)
        if title:
            (self.folder / title).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / title).write_text(text, encoding="utf-8")
        elif language in ("python", "pycon", "bash"):
            self.printed = getattr(self, f"_{language}")(text)
        return None

    def _python(self, text):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(text, "page", "exec"), self.namespace)
        return printed.getvalue()

    def _pycon(self, text):
        test = doctest.DocTestParser().get_doctest(text, {}, "page", "page", 0)
        test.globs, report = self.namespace, io.StringIO()
        results = doctest.DocTestRunner(verbose=False, optionflags=_FLAGS).run(
            test, out=report.write, clear_globs=False
        )
        assert test.examples, f"no >>> in {text}"
        assert not results.failed, report.getvalue()
        return ""

    def _bash(self, text):
        return "".join(self._command(line) for line in text.replace("\\\n", " ").splitlines() if line.strip())

    def _command(self, line):
        words = shlex.split(line, comments=True)
        if not words:
            return ""
        if words[0] in ("make", "pip"):
            _check_elsewhere(words)
            return ""
        if words[-1] == "&" or words[:2] in (["surelabel", "serve"], ["surelabel", "review"]):
            self._serve(line)
            return ""
        done = subprocess.run(
            ["bash", "-c", line],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        exits = _EXITS.search(line)
        assert done.returncode == (int(exits[1]) if exits else 0), f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout + (done.stderr if exits else "")

    def _serve(self, line):
        self.end_servers()
        command = re.sub(r"(&\s*)?(#.*)?$", "", line)
        if self.port not in command:
            command += f" --port {self.port}"
        log = self.folder / ".server.log"
        with log.open("w") as out:
            self.servers.append(
                subprocess.Popen(["bash", "-c", command], stdout=out, stderr=out, start_new_session=True)
            )
        deadline = time.monotonic() + SECONDS
        while not _answers(f"http://127.0.0.1:{self.port}/"):
            assert self.servers[-1].poll() is None, f"{line} ended:\n{log.read_text()}"
            assert time.monotonic() < deadline, f"{line} does not answer:\n{log.read_text()}"
            time.sleep(0.2)

    def end_servers(self):
        for process in self.servers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.servers = []


def _answers(address):
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def _check_elsewhere(words):
    if words[0] == "make":
        unknown = {word for word in words[1:] if "=" not in word} - make_targets()
        assert not unknown, f"make has no target {unknown}"
    for extras in re.findall(r"\[([\w,-]+)\]", " ".join(words)) if words[0] == "pip" else []:
        assert set(extras.split(",")) <= set(project()["optional-dependencies"]), extras


@functools.cache
def make_targets():
    return frozenset(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), flags=re.M))


@functools.cache
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
