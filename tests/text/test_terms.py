"""Terms are counted as scikit-learn counts them, and predictions do without scikit-learn."""

import itertools
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from surelabel.text.settings import LinearSettings
from surelabel.text.terms import _WORD, Terms

_TEXTS = st.lists(st.text("ab AB'é_1\n\u2019\u00a0İ", max_size=25), min_size=1, max_size=6)


@pytest.mark.parametrize(("pair_weight", "character_weight"), [(0, 0), (0.5, 0), (0.5, 1), (0, 1)])
@given(texts=_TEXTS, new=_TEXTS)
def test_counts_are_those_of_scikit_learn(pair_weight, character_weight, texts, new):
    terms = Terms(LinearSettings(min_texts=1, pair_weight=pair_weight, character_weight=character_weight))
    terms.fit(texts)
    terms._weigh = lambda counts: counts
    options = [(terms.vocabulary, {"token_pattern": _WORD, "ngram_range": (1, 2 if pair_weight else 1)})]
    options += [(terms.characters, {"analyzer": "char_wb", "ngram_range": (3, 5)})]
    expected = [np.zeros((len(new), 0))]
    for names, option in options:
        if names:
            expected.append(CountVectorizer(vocabulary=names, **option).transform(new).toarray())
    np.testing.assert_array_equal(terms.transform(new).toarray(), np.hstack(expected))


@given(texts=_TEXTS)
def test_all_terms_of_the_texts_are_kept_if_one_text_is_enough(texts):
    terms = Terms(LinearSettings(min_texts=1))
    terms.fit(texts)
    words = [re.findall(_WORD, text.lower()) for text in texts]
    pairs = [f"{one} {other}" for each in words for one, other in itertools.pairwise(each)]
    assert terms.vocabulary == sorted({*pairs, *(word for each in words for word in each)})


def test_a_model_is_loaded_and_answers_without_scikit_learn_and_pandas(tmp_path):
    """They take half of the time to start."""
    model = tmp_path / "model"
    code = f"""
import sys
from surelabel import load_bundle
print(load_bundle({str(model)!r}).answers(["Crude, a barrel, petroleum."], describe=True)[0].certain)
print([name for name in ("sklearn", "pandas", "scipy.stats", "matplotlib", "torch") if name in sys.modules])
"""
    from surelabel import corpora
    from surelabel.models import TrainingSettings, train_bundle

    train_bundle(corpora.load("synthetic", n_texts=300, n_labels=5), TrainingSettings(compared={})).save(model)
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["('oil',)", "[]"]
