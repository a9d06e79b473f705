"""How the program starts: fast, with help for every command, and with a message where the extra is missing."""

import re
import resource
import subprocess
import sys

import pytest

COMMANDS = (
    "demo", "train", "predict", "evaluate", "calibrate", "serve", "review", "learn", "watch", "data", "reviews",
    "reproduce",
)  # fmt: skip
HEAVY = {
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


def test_help_takes_less_than_half_a_second_of_processor_time():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = subprocess.run([sys.executable, "-m", "surelabel", "--help"], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert all(f"  {name} " in found.stdout for name in COMMANDS)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_nothing_heavy_is_imported_before_a_command_runs():
    code = f"import sys; import surelabel.cli; print({HEAVY!r} & set(sys.modules), 'numpy' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split("\n")[0] == "set() False"


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
