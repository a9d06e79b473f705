"""One corpus and the models that tests of bundles share."""

import pytest

from models.quick import mixed, quick_train
from surelabel import corpora


@pytest.fixture(scope="session")
def corpus():
    """1,500 texts with 8 labels, undivided, with a column of groups; every other text is too short to be sure of."""
    made = mixed(1_500)
    groups = ["north" if row % 3 else "south" for row in range(len(made))]
    return corpora.Corpus.from_label_sets("made up", made.texts, made.label_sets, columns={"region": groups})


@pytest.fixture(scope="session")
def new():
    """400 texts that the model has not seen."""
    return mixed(1_900).rows(range(1_500, 1_900))


@pytest.fixture(scope="session")
def divided(corpus):
    """The corpus with its parts."""
    return corpora.draw_parts(corpus, 0)


@pytest.fixture(scope="session")
def bundle(divided):
    """A linear model that files some texts."""
    return quick_train(divided, max_wrong="0.1")


@pytest.fixture(scope="session")
def folder(bundle, tmp_path_factory):
    """The model in a folder; never change it."""
    return bundle.save(tmp_path_factory.mktemp("models") / "model")
