"""Run the code blocks of a page, top to bottom, in a folder of its own (`page_blocks` says how they are written).

A line of a `bash` block is a command; it must succeed, or end with the code of a comment `# exits N`. Its output is
what it writes to stdout, and also to stderr (without progress) if it is meant to fail. Some commands are not run as
they stand:

- `surelabel train`, `predict` and what a page has called before run in this process, which has the imports behind it,
  but on README every command is a process of its own;
- `surelabel serve ...`, `surelabel review ...` and `python ... &` are servers: started in the background, waited for
  until they answer, ended by the next one or with the page; other commands that end in `&` are ended with the page;
- `make X` only checks that there is such a target, `pip install` that there are such extras, and `git clone`, with the
  `cd` into it, does nothing;
- `export NAME=value` holds for the rest of the page, in Python too.

The ports 8000 (the service) and 8786 (Dask) of a page stand for free ones. There is no network but this machine, and
no corpus but the made-up one.
"""

import contextlib
import csv
import doctest
import functools
import io
import itertools
import json
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

import yaml

from command_line import Result, run_here
from page_blocks import EXECUTED, PARSED, PageError, read_blocks
from surelabel import corpora

__all__ = ["ROOT", "pages", "run_page", "write_example_files"]

ROOT = Path(__file__).parents[1]
SECONDS = 900  # for a command; pages are quick, machines are busy
PORTS = ("8000", "8786")

# As on a terminal: every command of this page is a process.
_AS_PROCESSES = "README.md:"
_SHELL = re.compile(r"[|<>&$`*]|;\s|--workers|--scheduler|^\w+=")
_SERVERS = (["surelabel", "serve"], ["surelabel", "review"])
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_NOWHERE = "http://127.0.0.1:9"
# How far a step is, every two seconds: what a page shows must not depend on how busy the machine is.
_PROGRESS = re.compile(r"^  [a-z][\w ]*: (\d+%, )?\d+ s(, about \d+ s left)?\n", re.MULTILINE)
_EXITS = re.compile(r"#\s*exits (\d+)\s*$")
_BACKGROUND = re.compile(r"\s*&\s*(#.*)?$")
_VARIABLE = re.compile(r"^\w+=")
_EXTRAS = re.compile(r"^(?:\.|surelabel)\[([\w,-]+)\]")


def pages():
    """Return the pages whose code is run, by their paths from the project's root."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


def write_example_files(folder):
    """Write the texts that pages may use: tickets.csv (id, body, tags), and new.csv (id, body)."""
    tickets = corpora.generate_synthetic(600, n_labels=12, seed=1)
    new = corpora.generate_synthetic(20, n_labels=12, seed=2)
    tags = [";".join(sorted(label_set)) for label_set in tickets.label_sets]
    _write_table(
        folder / "tickets.csv", ("id", "body", "tags"), zip(_ids("ticket", 600), tickets.texts, tags, strict=True)
    )
    _write_table(folder / "new.csv", ("id", "body"), zip(_ids("new", 20), new.texts, strict=True))


def _ids(word, n_texts):
    return [f"{word}-{number}" for number in range(1, n_texts + 1)]


def _write_table(path, names, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def run_page(markdown, page, folder, monkeypatch):
    """Run all blocks of a page in a folder; raise PageError, naming file and line, where one does not do as it says."""
    blocks = read_blocks(markdown, page)
    if not blocks:
        return
    write_example_files(folder)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    for name, value in _surroundings(folder).items():
        monkeypatch.setenv(name, value)
    with PageRun(folder, monkeypatch.setenv) as run:
        for number, block in enumerate(blocks):
            following = blocks[number + 1] if number + 1 < len(blocks) else None
            run.do(block, following if following is not None and following.is_output else None)


def _surroundings(folder):
    """Return environment variables that keep a page from the network, the user's files and terminals."""
    empty = str(folder.parent / f".{folder.name}-home")
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "MPLBACKEND": "Agg",
        "PYTHONUTF8": "1",
        "HF_HUB_OFFLINE": "1",
        "SURELABEL_DATA": empty,
        "SURELABEL_CACHE": empty,
        "http_proxy": _NOWHERE,
        "https_proxy": _NOWHERE,
        "no_proxy": "127.0.0.1,localhost",
        "npm_config_offline": "true",
        "npm_config_cache": empty,
    }


class PageRun:
    """What a page has done so far: its namespace, its servers, its ports."""

    def __init__(self, folder, set_variable):
        self.folder = folder
        self.set_variable = set_variable
        self.log = folder.parent / f".{folder.name}.log"
        self.namespace = {"__name__": "__main__"}
        self.ports = dict(zip(PORTS, _free_ports(len(PORTS)), strict=True))
        self.server = None
        self.others = []
        self.cloned = set()
        self.called = {"train", "predict"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.server, *reversed(self.others)):
            _end(process)

    def do(self, block, output):
        """Run, write or parse a block, and compare what it printed."""
        if block.language in PARSED:
            _parse(block, block.text)
        if block.is_output:
            return
        text = self._with_ports(block.text)
        if block.title is not None:
            path = self.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif block.language in EXECUTED:
            printed = getattr(self, f"_run_{block.language}")(block, text)
            if output is not None:
                _compare(output, self._without_ports(printed))

    def _run_python(self, block, text):
        printed = io.StringIO()
        # Empty lines before it: tracebacks then name the lines of the page.
        source = "\n" * (block.line - 1) + text
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(source, block.page, "exec"), self.namespace)
            except BaseException as error:
                error.add_note(f"in the block at {block.place}")
                raise
        return printed.getvalue()

    def _run_pycon(self, block, text):
        test = doctest.DocTestParser().get_doctest(text, {}, block.page, block.page, block.line - 1)
        if not test.examples:
            raise PageError(f"{block.place}: pycon without >>>")
        test.globs = self.namespace
        report = io.StringIO()
        results = doctest.DocTestRunner(verbose=False, optionflags=_FLAGS).run(
            test, out=report.write, clear_globs=False
        )
        if results.failed:
            raise PageError(f"{block.place}:\n{report.getvalue()}")

    def _run_bash(self, block, text):
        return "".join(self._command(line, f"{block.page}:{number}") for number, line in _commands(text, block.line))

    def _command(self, line, place):
        """Do one line of a bash block, and return what it printed."""
        words = _words(line, place)
        if words[0] in {"$", ">"}:
            raise PageError(f"{place}: commands are written without a prompt: {line}")
        if words[0] in {"make", "pip"} or words[:3] == ["python", "-m", "pip"]:
            _check_elsewhere(words, place)
        elif words[:2] == ["git", "clone"]:
            self.cloned.add(Path(words[-1]).name.removesuffix(".git"))
        elif words[0] == "cd":
            if words[1] not in self.cloned:
                raise PageError(f"{place}: cd is only for what was cloned before: a page is run in one folder")
        elif words[0] == "export":
            name, _, value = words[1].partition("=")
            self.set_variable(name, value)
        elif words[:2] in _SERVERS or (words[0] == "python" and words[-1] == "&"):
            _end(self.server)
            self.server = self._start(line, place)
            self._wait_for_server(line, place)
        elif words[-1] == "&":
            self.others.append(self._start(line, place))
        elif self._is_plain(words, line, place):
            return _printed(run_here(*words[1:]), line, place)
        else:
            return _printed(_run(line), line, place)
        return ""

    def _is_plain(self, words, line, place):
        """Whether a command can do without a process: not of a shell, and tested as a process elsewhere."""
        if words[0] != "surelabel" or place.startswith(_AS_PROCESSES) or _SHELL.search(_EXITS.sub("", line)):
            return False
        is_known = words[1] in self.called
        self.called.add(words[1])
        return is_known

    def _start(self, line, place):
        """Start a command that goes on; it is the leader of a group of processes, to end them all."""
        if named := re.search(r"--port (\d+)", line):
            if named[1] not in map(str, self.ports.values()):
                raise PageError(f"{place}: a server's port must be one of {', '.join(PORTS)}")
        else:
            for server in map(" ".join, _SERVERS):
                line = line.replace(server, f"{server} --port {self.ports['8000']}", 1)
        command = _BACKGROUND.sub("", line)
        with self.log.open("a") as log:
            return subprocess.Popen(["bash", "-c", command], stdout=log, stderr=log, start_new_session=True)

    def _wait_for_server(self, line, place):
        deadline = time.monotonic() + SECONDS
        address = f"http://127.0.0.1:{self.ports['8000']}/readyz"
        while not _answers(address):
            if self.server.poll() is not None or time.monotonic() > deadline:
                raise PageError(f"{place}: {line}: does not answer. It said:\n{self.log.read_text()}")
            time.sleep(0.1)

    def _with_ports(self, text):
        for port, free in self.ports.items():
            text = re.sub(rf"\b{port}\b", str(free), text)
        return text

    def _without_ports(self, text):
        for port, free in self.ports.items():
            text = re.sub(rf"\b{free}\b", port, text)
        return text


def _commands(text, line):
    """Return the commands of a block with the numbers of their first lines."""
    found = []
    unfinished = None
    for number, part in enumerate(text.splitlines(), start=line):
        start, before = unfinished or (number, "")
        unfinished = None
        if part.endswith("\\"):
            unfinished = start, before + part[:-1]
        elif (before + part).strip() and not (before + part).lstrip().startswith("#"):
            found.append((start, (before + part).strip()))
    return found


def _words(line, place):
    """Return the words of a command, without the variables that are set for it alone."""
    try:
        return list(itertools.dropwhile(_VARIABLE.match, shlex.split(line, comments=True)))
    except ValueError as error:
        raise PageError(f"{place}: a command must be on one line, or its lines end in \\: {error}") from error


def _run(line):
    """Run a command to its end, in a process."""
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL
    )
    return Result(done.returncode, done.stdout, done.stderr)


def _printed(done, line, place):
    """Check the exit code of a command, and return what it printed."""
    exits = _EXITS.search(line)
    expected = int(exits[1]) if exits else 0
    if done.code != expected:
        raise PageError(
            f"{place}: {line}\nended with {done.code}, not {expected}.\n{done.out[-2000:]}\n{done.err[-4000:]}"
        )
    return done.out + (_PROGRESS.sub("", done.err) if expected else "")


def _check_elsewhere(words, place):
    """Check that what CI runs elsewhere is there: a target of make, extras of the package."""
    if words[0] == "make":
        targets = [word for word in words[1:] if "=" not in word]
        unknown = [target for target in targets if target not in _make_targets()]
        if unknown or not targets:
            raise PageError(f"{place}: make has no target {' '.join(unknown)!r}")
        return
    for word in words:
        named = _EXTRAS.match(word)
        unknown = sorted(set(named[1].split(",")) - _extras()) if named else []
        if unknown:
            raise PageError(f"{place}: there are no extras {', '.join(unknown)}")


@functools.cache
def _make_targets():
    return frozenset(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


@functools.cache
def _extras():
    return frozenset(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def _parse(block, text):
    parse = {"json": json.loads, "toml": tomllib.loads, "yaml": yaml.safe_load}[block.language]
    try:
        return parse(text)
    except (ValueError, yaml.YAMLError) as error:
        raise PageError(f"{block.place}: not {block.language}: {error}") from error


def _compare(output, printed):
    """Raise where something else was printed: as JSON, YAML or TOML where it is said to be that, else as text."""
    if output.language in PARSED:
        is_same = _is_like(_parse(output, output.text), _parse(output, printed))
    else:
        is_same = doctest.OutputChecker().check_output(output.text, printed, _FLAGS)
    if not is_same:
        raise PageError(f"{output.place}: printed something else.\nExpected:\n{output.text}\nGot:\n{printed}")


def _is_like(expected, found):
    """Whether values are equal; an expected "..." is equal to any."""
    if expected == "...":
        return True
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(_is_like(expected[key], found[key]) for key in expected)
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(_is_like, expected, found))
    return expected == found


def _free_ports(n_ports):
    with contextlib.ExitStack() as stack:
        listening = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(n_ports)]
        return [one.getsockname()[1] for one in listening]


def _answers(address):
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        return error.code != 503
    except OSError:
        return False


def _end(process):
    """End a process and those it has started."""
    if process is None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
