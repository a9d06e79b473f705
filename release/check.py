"""Build the package and try it in clean environments (`make wheel`).

The sdist and the wheel lie in build/release/dist afterwards. Upload these files: they are the ones that were tried. The
programs of release/inside run in environments that hold the wheel and its dependencies, and never see the checkout.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSIDE = ROOT / "release" / "inside"
WORK = ROOT / "build" / "release"
MINUTES = 60


def run(*command: object, folder: Path = WORK, tries: int = 1) -> None:
    """Run a command without the project's own variables; commands that fetch packages may try twice."""
    hidden = ("PYTHONPATH", "MYPYPATH", "SURELABEL_DATA", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    words = [str(word) for word in command]
    print("  " + " ".join(words), flush=True)
    for left in reversed(range(tries)):
        done = subprocess.run(words, cwd=folder, env=environment, check=False, timeout=20 * MINUTES)
        if done.returncode == 0:
            return
        if not left:
            raise SystemExit(f"make wheel: exit code {done.returncode} of {' '.join(words)}")


def empty_folder(path: Path) -> Path:
    """Return a new folder without anything in it."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def build() -> Path:
    """Build the sdist and the wheel from what git has; return the wheel."""
    source, dist = empty_folder(WORK / "source"), empty_folder(WORK / "dist")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name)
    run(sys.executable, "-m", "build", "--outdir", dist, source, tries=2)
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = {path.relative_to(source / "src").as_posix() for path in (source / "src").rglob("*") if path.is_file()}
    wanted = {name for name in wanted if ".egg-info/" not in name}
    if packed != wanted:
        raise SystemExit(f"the wheel lacks {sorted(wanted - packed)} and has too much: {sorted(packed - wanted)}")
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    lacking = {"CHANGELOG.md", "LICENSE", "README.md", "constraints.txt", "tests/conftest.py"} - names
    if lacking or any(name.startswith(("results/", "benchmarks/")) for name in names):
        raise SystemExit(f"the sdist lacks {sorted(lacking)}, or has results or benchmarks in it")
    return wheel


def environment(name: str, *packages: object) -> Path:
    """Return the interpreter of a new environment with packages in the versions of constraints.txt."""
    folder = empty_folder(WORK / "environments" / name)
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    install(folder / "bin" / "python", *packages)
    return folder / "bin" / "python"


def install(python: Path, *packages: object) -> None:
    """Install packages; pip is the one that runs this file."""
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet")
    run(*pip, "-c", ROOT / "constraints.txt", *packages, tries=2)


def main() -> None:
    """Build the package, then try it without extras, with the types, and with everything that README shows."""
    wheel = build()
    python = environment("core", wheel)
    run(python, "-I", INSIDE / "core.py", folder=empty_folder(WORK / "runs" / "core"))
    types = empty_folder(WORK / "runs" / "types")
    shutil.copy2(INSIDE / "client.py", types)
    run(sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--python-executable", python,
        "client.py", folder=types)  # fmt: skip
    install(python, f"{wheel}[app]")
    demo = empty_folder(WORK / "runs" / "demo")
    run(python.parent / "surelabel", "demo", "--out", demo / "demo", folder=demo)
    if not list(demo.rglob("report.html")):
        raise SystemExit("surelabel demo has left no report")
    print("The wheel works, without extras and with [app].")


if __name__ == "__main__":
    main()
