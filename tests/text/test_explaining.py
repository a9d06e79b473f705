"""Words that speak for a label: contributions of linear classifiers add up to the score."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel import text
from surelabel.exceptions import InvalidInputError, NotCalibratedError
from surelabel.text.explaining import Occurrences

pytestmark = pytest.mark.filterwarnings("ignore:.* are empty; they are kept")
TEXTS = [
    "wheat and corn",
    "the dollar fell",
    "corn prices, corn!",
    "dollar and yen",
    "İstanbul wheat",
    "don't fall",
] * 5
LABELS = [[1, 0, 1], [0, 1, 1], [1, 0, 1], [0, 1, 1], [1, 0, 1], [0, 1, 1]] * 5
NAMES = ["grain", "money", "always"]


def fitted(kind="linear", **settings):
    classifier = text.make(kind, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one label is on every text
        return classifier.fit(TEXTS, LABELS, label_names=NAMES, progress=False)


VARIANTS = {
    "words": {"pair_weight": 0.0},
    "pairs": {},
    "characters": {"character_weight": 0.5},
    "stems": {"language": "english", "character_weight": 0.5},
}


@pytest.fixture(scope="module", params=VARIANTS)
def linear(request):
    return fitted(min_texts=1, **VARIANTS[request.param])


@given(
    st.lists(
        st.sampled_from(
            ["wheat", "Corn", "DOLLAR", "and", "prices,", "falling", "don't", "İstanbul", "\u1e9e", "?!", "5", " \t"]
        )
        | st.text(max_size=6),
        max_size=12,
    ).map(" ".join)
)
@settings(max_examples=60, deadline=None)
def test_contributions_add_up_to_the_score(linear, given_text):
    features = linear._features([given_text])
    scores = linear._scores(features)[0]
    for number, name in enumerate(NAMES[:2]):
        explanation = linear.explain(given_text, name)
        assert explanation.score == pytest.approx(scores[number], abs=1e-4)
        total = sum(word.weight for word in explanation.words) + explanation.intercept + explanation.rest
        assert total == pytest.approx(explanation.score, abs=1e-9)
        assert explanation.rest == 0
        assert explanation.is_exact
        for word in explanation.words:
            assert given_text[word.start : word.end] == word.word != ""


def test_by_hand():
    classifier = fitted(min_texts=1, pair_weight=0.0)
    explanation = classifier.explain("Corn! corn and the", "grain")
    weight = dict(zip(classifier._terms.vocabulary, classifier._scores.weights[:, 0], strict=True))
    values = {"corn": 1 + np.log(2), "and": 1.0, "the": 1.0}
    idf = dict(zip(classifier._terms.vocabulary, classifier._terms.idf, strict=True))
    raw = {word: value * idf[word] for word, value in values.items()}
    length = np.sqrt(sum(value**2 for value in raw.values()))
    expected = [raw[word] / length * weight[word] for word in ("corn", "and", "the")]
    assert [word.word for word in explanation.words] == ["Corn", "corn", "and", "the"]
    weights = [word.weight for word in explanation.words]
    assert weights == pytest.approx([expected[0] / 2, expected[0] / 2, expected[1], expected[2]], abs=1e-6)
    assert explanation.speaking_for(1)[0].word.lower() == "corn"


def test_places_of_words_whose_lower_case_is_longer():
    occurrences = Occurrences("İİ wheat", r"[^\W\d_]+")
    assert "İİ wheat"[slice(*occurrences.spans[-1])] == "wheat"
    assert occurrences.places["wheat"] == [(len(occurrences.spans) - 1,)]


def test_labels_that_are_fixed_have_an_intercept_alone(linear):
    explanation = linear.explain("wheat", "always")
    assert explanation.words == ()
    assert explanation.score == explanation.intercept


def test_labels_by_number_and_labels_that_are_none(linear):
    assert linear.explain("wheat", 0) == linear.explain("wheat", "grain")
    for wrong in ("gold", 3, -1, True):
        with pytest.raises(InvalidInputError, match="'label' argument of explain must be one of the 3 labels"):
            linear.explain("wheat", wrong)
    with pytest.raises(NotCalibratedError):
        text.make("linear").explain("wheat", 0)


def test_shortlists_are_explained_too():
    classifier = fitted(min_texts=1, many_labels=2)
    explanation = classifier.explain("corn and wheat", "grain")
    probability = classifier.predict_proba(["corn and wheat"])[0, 0]
    assert 1 / (1 + np.exp(-explanation.score)) == pytest.approx(probability, abs=1e-5)
    assert sum(word.weight for word in explanation.words) + explanation.intercept == pytest.approx(explanation.score)


def test_hybrid_terms_are_exact_and_vectors_are_the_rest():
    classifier = fitted("hybrid", min_texts=1, keep_vectors=False)
    explanation = classifier.explain("corn and wheat", "grain")
    score = classifier._scores(classifier._features(["corn and wheat"]))[0, 0]
    assert explanation.score == pytest.approx(score, abs=1e-5)
    assert explanation.rest != 0
    total = sum(word.weight for word in explanation.words) + explanation.intercept + explanation.rest
    assert total == pytest.approx(explanation.score)


CNN = {"embedding_size": 8, "n_kernels": 2, "kernel_words": 2, "n_hidden": 8, "epochs": 15, "dropout": 0.0}


@pytest.mark.parametrize(
    ("kind", "options"), [("randinit", CNN), ("bert", {"model": "minilm", "max_tokens": 16, "epochs": 1})]
)
def test_neural_kinds_are_gradient_times_input(kind, options):
    classifier = fitted(kind, **options)
    given_text = "Corn prices, 3.5 unbelievably-strange dollars"
    explanation = classifier.explain(given_text, "grain")
    probability = classifier.predict_proba([given_text])[0, 0]
    assert 1 / (1 + np.exp(-explanation.score)) == pytest.approx(probability, abs=1e-4)
    total = sum(word.weight for word in explanation.words) + explanation.rest
    assert total == pytest.approx(explanation.score)
    assert not explanation.is_exact
    spans = [(word.start, word.end) for word in explanation.words]
    assert spans == sorted(spans)
    assert any(word.word == "Corn" and word.weight != 0 for word in explanation.words)
    assert all(given_text[word.start : word.end] == word.word for word in explanation.words)
    classifier.explain("", "grain")


def test_gradients_of_a_linear_network_are_exact():
    """Where the network is linear in its vectors, gradient times input is what each word adds."""
    torch = pytest.importorskip("torch")
    classifier = fitted("randinit", **CNN)

    class Sum(torch.nn.Module):
        def __init__(self, embedding):
            super().__init__()
            self.embedding = embedding
            self.weight = torch.nn.Parameter(torch.arange(24.0).reshape(8, 3))

        def forward(self, input_ids, lengths):
            return {"logits": self.embedding(input_ids).sum(1) @ self.weight}

    network = Sum(classifier._network.embedding)
    classifier._network = network
    explanation = classifier.explain("corn and wheat", "money")
    ids = [classifier._tokenizer.token_to_id(word) for word in ("corn", "and", "wheat")]
    expected = (network.embedding.weight[ids] @ network.weight)[:, 1].tolist()
    assert [word.weight for word in explanation.words] == pytest.approx(expected, abs=1e-5)
    assert explanation.rest == pytest.approx(0, abs=1e-5)


def test_blends_add_their_members():
    classifier = fitted("blend", of="linear,linear", members={"linear": {"min_texts": 1}})
    explanation = classifier.explain("corn and wheat", "grain")
    first, second = (member.explain("corn and wheat", 0) for member in classifier.members_)
    weights = classifier._weights[:, 0]
    expected = weights[0] * first.words[0].weight + weights[1] * second.words[0].weight
    assert explanation.words[0].weight == pytest.approx(expected)
    total = sum(word.weight for word in explanation.words) + explanation.intercept + explanation.rest
    assert total == pytest.approx(explanation.score)
