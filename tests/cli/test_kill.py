"""Kill -9 and Ctrl-C: old files stay complete, and the same command again ends with the same result."""

import os
import signal
import subprocess
import sys
import time

import pytest

from surelabel import load_bundle
from tickets import FAST, OWN, tickets, write_csv

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals that cannot be caught")


def start(*arguments):
    """Start a command as a shell does that does not ignore SIGINT, whatever this process inherited."""
    command = [sys.executable, "-m", "surelabel", *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def signal_when(condition, number, *arguments, content=b""):
    """Run a command and send it a signal as soon as a condition holds; return exit code and errors.

    The command's input has some content and does not end, so a command that reads it waits for the signal.
    """
    process = start(*arguments)
    process.stdin.write(content)
    process.stdin.flush()
    while process.poll() is None and not condition():
        time.sleep(0.002)
    if process.poll() is None:
        os.killpg(process.pid, number)
    _, errors = process.communicate()
    return process.returncode, errors.decode()


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_killed_training_leaves_the_old_model_and_ends_the_same_way(ok, own_file, trained, tmp_path):
    folder = tmp_path / "model"
    load_bundle(trained.folder).save(folder)
    old = files(folder)
    command = ("train", own_file, *OWN, *FAST, "--out", folder)
    work = list(tmp_path.glob(".model*"))
    signal_when(lambda: list(tmp_path.glob(".model*")) != work, signal.SIGKILL, *command)
    if files(folder) == old:  # killed in time
        load_bundle(folder)
    ok(*command)
    texts = [row["body"] for row in tickets(30, seed=4)]
    one, other = load_bundle(folder), load_bundle(trained.folder)
    assert one.predict_proba(texts).tobytes() == other.predict_proba(texts).tobytes()
    assert [answer.record() for answer in one.answers(texts)] == [answer.record() for answer in other.answers(texts)]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_answers_leave_the_old_file(model, tmp_path, tmp_path_factory, number):
    many = write_csv(tmp_path_factory.mktemp("many") / "many.csv", tickets(2_000, seed=9)).read_bytes()
    target = tmp_path / "answers.csv"
    target.write_text("old")

    def begun():
        return any(path.name != "answers.csv" and path.stat().st_size > 10_000 for path in tmp_path.iterdir())

    command = ("predict", model, "-", "--input-format", "csv", "--text", "body", "--out", target)
    code, errors = signal_when(begun, number, *command, content=many)
    assert "Traceback" not in errors
    assert code in {130 if number == signal.SIGINT else -signal.SIGKILL}
    assert target.read_text() == "old"
    if number == signal.SIGINT:
        assert errors.splitlines()[-1].startswith("surelabel: stopped.")
        assert [path.name for path in tmp_path.iterdir()] == ["answers.csv"]


def test_a_shell_that_ignores_ctrl_c_keeps_doing_so(model):
    """As for any program in the background: only who listens can be interrupted."""
    code = (
        "import signal, sys\nfrom surelabel.cli import main\nprint(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert found.stdout == "True\n"
