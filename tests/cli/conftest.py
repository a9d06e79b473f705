"""The command line in this process: its exit code and what it printed."""

import contextlib
import dataclasses
import io
import logging
import sys
import warnings

import pytest

from bundle_cases import corpus, small_bundle
from surelabel.cli import main
from surelabel.models import TrainingSettings, train_to_folder


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs a command; log, warnings and streams are put back afterwards."""
    monkeypatch.setenv("COLUMNS", "200")
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    own = logging.getLogger("surelabel").level

    def call(*arguments):
        out, err = io.StringIO(), io.StringIO()
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            main([str(argument) for argument in arguments])
        return Result(ended.value.code, out.getvalue(), err.getvalue())

    yield call
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)
    logging.getLogger("surelabel").setLevel(own)
    sys.stdout.flush()


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Return the folder of a small model that no test changes."""
    folder = tmp_path_factory.mktemp("models") / "small"
    small_bundle().save(folder)
    return folder


@pytest.fixture(scope="session")
def own_file(tmp_path_factory):
    """Return a user's file: texts, tags separated by semicolons."""
    path = tmp_path_factory.mktemp("data") / "tickets.csv"
    found = corpus()
    lines = ["body,tags"]
    lines += [f'"{text}",{";".join(sorted(names))}' for text, names in zip(found.texts, found.label_sets, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def trained(own_file, tmp_path_factory):
    """Return the folder of a model that was trained on the user's file."""
    from surelabel import corpora

    folder = tmp_path_factory.mktemp("models") / "trained"
    found = corpora.load(own_file, text="body", labels="tags", separator=";")
    train_to_folder(found, folder, TrainingSettings(compared={}))
    return folder
