"""The command line in this process, and models for it."""

import pytest

from bundle_cases import corpus, small_bundle
from command_line import run_here
from surelabel.models import TrainingSettings, train_to_folder


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs a command and returns its exit code and what it printed."""
    monkeypatch.setenv("COLUMNS", "200")
    return run_here


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
