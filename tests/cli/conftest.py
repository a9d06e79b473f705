"""One small model for all tests of the command line."""

import json
from types import SimpleNamespace

import pytest

from tickets import FAST, OWN, run_here, tickets, write_csv


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def run():
    """Return a function that runs a command."""
    return run_here


@pytest.fixture
def ok():
    """Return a function that runs a command that must succeed; it returns what was printed."""

    def call(*arguments):
        found = run_here(*arguments)
        assert found.code == 0, found.err
        return found.out

    return call


@pytest.fixture(scope="session")
def own_file(tmp_path_factory):
    """Return a user's file: 1,200 tickets with tags separated by semicolons."""
    return write_csv(tmp_path_factory.mktemp("data") / "tickets.csv", tickets(1_200))


@pytest.fixture(scope="session")
def new_file(tmp_path_factory):
    """Return 150 tickets that no model has seen."""
    return write_csv(tmp_path_factory.mktemp("data") / "june.csv", tickets(150, seed=6))


@pytest.fixture(scope="session")
def trained(own_file, tmp_path_factory):
    """Return the folder of a model of the tickets, and what its training printed."""
    folder = tmp_path_factory.mktemp("models") / "tickets"
    found = run_here("train", own_file, *OWN, *FAST, "--out", folder)
    assert found.code == 0, found.err
    return SimpleNamespace(folder=folder, printed=found)


@pytest.fixture(scope="session")
def model(trained):
    """Return the folder of the model, which no test changes."""
    return trained.folder


@pytest.fixture
def figures(model):
    """Return a function that reads the description of a model."""
    return lambda folder=model: json.loads((folder / "bundle.json").read_text())
