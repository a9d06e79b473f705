"""Build the package and try it in clean environments: `make wheel` (quick) and `make release` (`--all`).

What is built lies in build/release/dist afterwards: upload these files, they are the ones that were tried. The programs
of release/inside run in environments that hold the wheel and what it asks for, in empty folders, and never see the
checkout. Python interpreters are looked for on the PATH and in the variable PYTHONS (paths with spaces between); one
that is not found is reported as not tested.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
INSIDE = ROOT / "release" / "inside"
CONSTRAINTS = ROOT / "constraints.txt"
WORK = ROOT / "build" / "release"

MINUTES = 60
# In the order in which a failure tells most.
EXTRAS = ("corpora", "cli", "plots", "service", "review", "distributed", "rivals", "text")
NOT_IN_SDIST = ("results/", "benchmarks/", "build/", ".ci/")
# Tests that need the extras `cli` and `plots` and nothing else.
CORE_TESTS = (
    "test_*.py", "_core", "corpora", "engines", "evaluation", "kernels", "labels", "measures", "plots", "report",
    "rivals", "sets", "taxonomies",
)  # fmt: skip
TEST_PACKAGES = ("hypothesis", "pytest", "pytest-xdist", "mapie")
FROM_PROJECT = ("PYTHONPATH", "MYPYPATH", "SURELABEL_DATA", "SURELABEL_CACHE", "VIRTUAL_ENV")


class CheckError(Exception):
    """Something is not as a release must be."""


@dataclasses.dataclass
class Outcome:
    """What one check said, and how long it took."""

    name: str
    python: str
    verdict: str
    seconds: float


@dataclasses.dataclass
class Built:
    """The files of a release."""

    wheel: Path
    sdist: Path


def run(command: Sequence[object], folder: Path, minutes: float = 20, extra: Mapping[str, str] | None = None) -> str:
    """Run a command in a folder, without the project's own variables, and return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name not in FROM_PROJECT} | dict(extra or {})
    words = [str(word) for word in command]
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=minutes * MINUTES)
        except BaseException as error:
            # Not the process alone: what it has started would live on.
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise CheckError(f"not done after {minutes:g} minutes: {' '.join(words)}") from error
            raise
    if process.returncode:
        raise CheckError(f"exit code {process.returncode} of: {' '.join(words)}\n{printed[-4000:]}")
    return printed


def twice(command: Sequence[object], folder: Path, pause: float = 10) -> str:
    """Run a command that fetches packages; if it fails, once more: a registry may have a bad moment."""
    try:
        return run(command, folder)
    except CheckError as first:
        print(f"  failed, once more in {pause:g} s: {str(first).splitlines()[0]}", flush=True)
    time.sleep(pause)
    try:
        return run(command, folder)
    except CheckError as error:
        raise CheckError(f"packages could not be fetched or do not fit, tried twice: {error}") from error


def empty_folder(path: Path) -> Path:
    """Return a new folder without anything in it."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


@dataclasses.dataclass
class Environment:
    """A virtual environment that has nothing, not even pip, until `install`."""

    folder: Path

    @property
    def python(self) -> Path:
        """Return its interpreter."""
        return self.folder / "bin" / "python"

    @classmethod
    def new(cls, name: str, interpreter: str | Path) -> Environment:
        """Make an environment of an interpreter."""
        folder = empty_folder(WORK / "environments" / name)
        run([interpreter, "-m", "venv", "--without-pip", folder], WORK)
        return cls(folder)

    def install(self, *packages: object) -> None:
        """Install with the versions of constraints.txt; pip is the one that runs this file."""
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            self.python,
            "install",
            "--quiet",
            "--no-compile",
        ]
        twice([*pip, "-c", CONSTRAINTS, *packages], WORK)

    def program(self, name: str, *arguments: object, minutes: float = 20) -> None:
        """Run a program of release/inside in an empty folder."""
        here = empty_folder(WORK / "runs" / f"{self.folder.name}-{name}")
        run([self.python, "-I", INSIDE / f"{name}.py", *arguments], here, minutes)

    def remove(self) -> None:
        """Give the disk back."""
        shutil.rmtree(self.folder, ignore_errors=True)


def project() -> Any:
    """Return the table `project` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def supported_pythons(classifiers: Iterable[str]) -> list[str]:
    """Return the versions that the classifiers promise, e.g. 3.12.

    >>> supported_pythons(["Programming Language :: Python :: 3", "Programming Language :: Python :: 3.12"])
    ['3.12']
    """
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in classifiers)
    return [match[1] for match in found if match]


def version_of(interpreter: str | Path) -> str | None:
    """Return the version of an interpreter, None if it does not run."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        ran = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=False, timeout=MINUTES)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.strip() if ran.returncode == 0 else None


def find_pythons(versions: Iterable[str], named: str) -> dict[str, str | None]:
    """Return an interpreter of each version: this one, one of those that are named, or one on the PATH."""
    candidates = [sys.executable, *named.split()]
    known = {version_of(path): path for path in reversed(candidates)}
    found: dict[str, str | None] = {}
    for version in versions:
        on_path = shutil.which(f"python{version}")
        is_right = on_path is not None and version_of(on_path) == version
        found[version] = known.get(version) or (on_path if is_right else None)
    return found


def copy_of_checkout(target: Path) -> Path:
    """Copy what git knows or would add: leftovers of other builds must not get into a release."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT)
    empty_folder(target)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def contents(wheel: Path) -> dict[str, str]:
    """Return the files of a wheel with their checksums."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def check_wheel(built: Built, source: Path) -> None:
    """Check that the wheel holds the package, all of it, its metadata, and nothing else."""
    found = contents(built.wheel)
    packed = {name for name in found if ".dist-info/" not in name}
    files = {
        path.relative_to(source / "src").as_posix(): path for path in (source / "src").rglob("*") if path.is_file()
    }
    wanted = {name for name in files if ".egg-info/" not in name}
    if packed != wanted:
        raise CheckError(f"the wheel lacks {sorted(wanted - packed)} and has too much {sorted(packed - wanted)}")
    changed = [name for name in sorted(packed) if hashlib.sha256(files[name].read_bytes()).hexdigest() != found[name]]
    if changed:
        raise CheckError(f"files of the wheel are not those of the checkout: {changed}")
    information = {name.partition(".dist-info/")[2] for name in found if ".dist-info/" in name}
    if not {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"} <= information:
        raise CheckError(f"the wheel's metadata is incomplete: {sorted(information)}")


def check_sdist(built: Built) -> None:
    """Check that the sdist has what a distributor needs, and no results."""
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    too_much = sorted(name for name in names if name.startswith(NOT_IN_SDIST))
    lacking = sorted(
        {
            "CHANGELOG.md",
            "CITATION.cff",
            "LICENSE",
            "README.md",
            "constraints.txt",
            "pyproject.toml",
            "tests/conftest.py",
        }
        - names
    )
    if too_much or lacking:
        raise CheckError(f"the sdist lacks {lacking} and has too much: {too_much[:5]}")


def build() -> Built:
    """Build the sdist and the wheel from it, which must hold exactly the package of the checkout."""
    source, dist = copy_of_checkout(WORK / "source"), empty_folder(WORK / "dist")
    twice([sys.executable, "-m", "build", "--outdir", dist, source], WORK)
    built = Built(next(dist.glob("*.whl")), next(dist.glob("*.tar.gz")))
    check_wheel(built, source)
    check_sdist(built)
    return built


def check_direct(built: Built) -> None:
    """Build the wheel from the checkout without an sdist: metadata and all, it must be the same."""
    direct = empty_folder(WORK / "direct")
    twice([sys.executable, "-m", "build", "--wheel", "--outdir", direct, WORK / "source"], WORK)
    if contents(next(direct.glob("*.whl"))) != contents(built.wheel):
        raise CheckError("the wheel that the sdist gives is not the one that the checkout gives")


def check_types(environment: Environment) -> None:
    """Check a user's program with `mypy --strict` against what is installed."""
    here = empty_folder(WORK / "runs" / "types")
    shutil.copy2(INSIDE / "client.py", here)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--cache-dir", here / "cache"]
    run([*mypy, "--python-executable", environment.python, "client.py"], here)


def check_demo(environment: Environment, *options: str) -> None:
    """Run `surelabel demo` in an empty folder, with no data at hand: its model must come with a report."""
    here = empty_folder(WORK / "runs" / "demo")
    command = [environment.folder / "bin" / "surelabel", "demo", *options]
    run(command, here, minutes=20, extra={"SURELABEL_CACHE": str(here / "cache")})
    if not (here / "surelabel-demo" / "report.html").is_file():
        raise CheckError("surelabel demo has left no report")


def check_tests(environment: Environment) -> str:
    """Run the core's tests against what is installed, away from the checkout."""
    here = empty_folder(WORK / "runs" / f"tests-{environment.folder.name}")
    shutil.copytree(ROOT / "tests", here / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", here)
    folders = {name: sorted((here / "tests").glob(name)) for name in CORE_TESTS}
    if missing := [name for name, found in folders.items() if not found]:
        raise CheckError(f"there are no tests named {', '.join(missing)}: correct CORE_TESTS")
    chosen = [path.relative_to(here) for found in folders.values() for path in found]
    pytest = [environment.python, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
    return run([*pytest, *chosen], here, minutes=60).strip().splitlines()[-1]


class Checks:
    """Runs checks one after the other, and goes on if one fails."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def do(self, name: str, python: str, check: Callable[[], object]) -> bool:
        """Run a check and note what came of it."""
        print(f"{name} (Python {python})", flush=True)
        start = time.monotonic()
        try:
            said = check()
        except (CheckError, OSError, StopIteration) as error:
            print(f"  FAILED: {error}", flush=True)
            verdict = "FAILED"
        else:
            verdict = f"passed: {said}" if isinstance(said, str) else "passed"
        self.outcomes.append(Outcome(name, python, verdict, time.monotonic() - start))
        return verdict != "FAILED"

    def leave_out(self, name: str, python: str, reason: str) -> None:
        """Note what could not be tried."""
        self.outcomes.append(Outcome(name, python, f"not tested: {reason}", 0.0))

    def report(self) -> int:
        """Print what was tried; return the exit code."""
        width = max(len(outcome.name) for outcome in self.outcomes)
        print()
        for outcome in self.outcomes:
            print(f"{outcome.name:{width}}  {outcome.python:5} {outcome.seconds:6.0f} s  {outcome.verdict}")
        return int(any(outcome.verdict == "FAILED" for outcome in self.outcomes))


def check_quickly(checks: Checks, wheel: Path, python: str, model: Path, *, download: bool) -> None:
    """Try one environment without extras, then with `cli` and `plots` beside it; the demonstration may download."""
    demo = [] if download else ["--offline"]
    environment = Environment.new("core", sys.executable)
    if checks.do("install without extras", python, lambda: environment.install(wheel)):
        checks.do("core without extras", python, lambda: environment.program("core", model))
        checks.do("missing extras say their names", python, lambda: environment.program("missing", model))
        checks.do("types from outside", python, lambda: check_types(environment))
        if checks.do("install [cli,plots]", python, lambda: environment.install(f"{wheel}[cli,plots]")):
            checks.do(" ".join(["surelabel demo", *demo]), python, lambda: check_demo(environment, *demo))
    environment.remove()


def check_extra(checks: Checks, wheel: Path, extra: str, python: str, model: Path) -> None:
    """Try an extra alone: what it brings works, what others bring is named."""
    environment = Environment.new(extra, sys.executable)

    def try_it() -> None:
        if extra == "text":  # the version asked for by itself: an open one may bring other builds
            environment.install(
                next(line for line in CONSTRAINTS.read_text().splitlines() if line.startswith("torch=="))
            )
        environment.install(f"{wheel}[{extra}]")
        environment.program(f"extra_{extra}", model)
        environment.program("missing", model, extra)

    checks.do(f"[{extra}] alone", python, try_it)
    environment.remove()


def check_python(checks: Checks, wheel: Path, version: str, interpreter: str | None) -> None:
    """Run the core's tests from the wheel on one version of Python."""
    name = "core's tests from the wheel"
    if interpreter is None:
        checks.leave_out(name, version, "no interpreter found; PYTHONS can name one")
        return
    environment = Environment.new(f"python{version}", interpreter)

    def try_it() -> str:
        environment.install(f"{wheel}[cli,plots]", *TEST_PACKAGES)
        return check_tests(environment)

    checks.do(name, version, try_it)
    environment.remove()


def main() -> int:
    """Build and check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every extra alone, and every Python that is found")
    parser.add_argument(
        "--only", nargs="*", default=None, help="of --all: only these extras and versions, e.g. text 3.13"
    )
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    checks, made = Checks(), []
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    model = WORK / "model"
    shutil.rmtree(model, ignore_errors=True)
    if checks.do("build sdist and wheel", here, lambda: made.append(build())):
        wheel = made[0].wheel
        check_quickly(checks, wheel, here, model, download=options.all)
        pythons = find_pythons(supported_pythons(project()["classifiers"]), os.environ.get("PYTHONS", ""))
        if options.all:
            checks.do("the same wheel without the sdist", here, lambda: check_direct(made[0]))
            wanted = set(options.only or [*EXTRAS, *pythons])
            for extra in filter(wanted.__contains__, EXTRAS):
                check_extra(checks, wheel, extra, here, model)
            for version in filter(wanted.__contains__, pythons):
                check_python(checks, wheel, version, pythons[version])
    for folder in ("environments", "runs", "source", "direct"):
        shutil.rmtree(WORK / folder, ignore_errors=True)
    return checks.report()


if __name__ == "__main__":
    raise SystemExit(main())
