"""How the program starts: no heavy imports, help for every command, a message where the extra is missing."""

import re
import subprocess
import sys

import pytest

COMMANDS = (
    "demo", "train", "predict", "evaluate", "calibrate", "serve", "review", "learn", "watch", "data", "reviews",
    "reproduce",
)  # fmt: skip
HEAVY = {
    "numpy",
    "numba",
    "scipy",
    "sklearn",
    "torch",
    "transformers",
    "matplotlib",
    "jinja2",
    "pyarrow",
    "fastapi",
    "sqlalchemy",
}


def test_help_names_every_command_and_imports_nothing_heavy():
    code = (
        "import atexit, sys; sys.argv = ['surelabel', '--help']\n"
        f"atexit.register(lambda: print({HEAVY!r} & set(sys.modules)))\n"
        "from surelabel.__main__ import main; main()"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(f"  {name} " in found.stdout for name in COMMANDS)
    assert found.stdout.splitlines()[-1] == "set()"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained(ok, command):
    printed = ok(command, "--help")
    assert printed.startswith("Usage: surelabel")
    for line in re.findall(r"^  (--?[a-z].*)$", printed, re.MULTILINE):
        option, _, words = line.partition("  ")
        assert len(words.strip()) > 3 or "<" in option or option.isupper() or len(option) > 30, line


@pytest.mark.parametrize(("command", "most"), [("train", 28), ("predict", 17)])
def test_commands_stay_small(ok, command, most):
    assert len(re.findall(r"^  (?:-\w, )?--?[a-z]", ok(command, "--help"), re.MULTILINE)) <= most


def test_version(ok):
    from surelabel import __version__

    assert ok("--version") == f"surelabel {__version__}\n"


def test_without_the_extra_only_the_version_works():
    code = (
        "import sys; sys.modules['typer'] = None; sys.argv = ['surelabel', {argument!r}]\n"
        "from surelabel.__main__ import main; main()"
    )
    version, other = (
        subprocess.run(
            [sys.executable, "-c", code.format(argument=argument)], capture_output=True, text=True, check=False
        )
        for argument in ("--version", "demo")
    )
    assert version.returncode == 0
    assert other.returncode == 5
    assert "surelabel[cli]" in other.stderr
    assert len(other.stderr.splitlines()) == 1


def test_quiet_prints_results_alone(run, model, new_file, tmp_path):
    found = run("predict", model, new_file, "--text", "body", "--out", tmp_path / "a.jsonl", "--quiet")
    assert found.code == 0
    assert found.err == ""
    assert "150 answers" in found.out
