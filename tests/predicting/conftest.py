"""A small model, made once."""

import pytest

import surelabel
from surelabel import corpora


@pytest.fixture(scope="session")
def bundle():
    corpus = corpora.load("synthetic", n_texts=300, n_labels=5)
    own = corpus.rows(corpus.part_of != corpora.PARTS.index("test"))
    return surelabel.train(own, measure="log-loss", test=0)


@pytest.fixture(scope="session")
def bundle_folder(bundle, tmp_path_factory):
    return bundle.save(tmp_path_factory.mktemp("models") / "model")


@pytest.fixture(scope="session")
def texts():
    return list(corpora.load("synthetic", n_texts=40, n_labels=5, seed=7).texts)


@pytest.fixture
def source(texts, tmp_path):
    """A CSV file of 40 texts with ids."""
    import csv

    path = tmp_path / "texts.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows([f"t{number}", text] for number, text in enumerate(texts))
    return path
