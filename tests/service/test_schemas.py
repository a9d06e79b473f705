import pytest
from pydantic import ValidationError

from surelabel.answers import Answer, PlausibleLabelSet
from surelabel.service.schemas import PredictRequest, count_of, text_answer


def test_sizes_keep_every_digit():
    number = 2**53 + 1
    assert count_of(number, number).model_dump() == {
        "lower": "9007199254740993",
        "upper": "9007199254740993",
        "exact": True,
        "readable": "9.0 × 10^15",
    }
    assert count_of(10**5000, 10**5000).lower == "1" + "0" * 5000  # more digits than str gives


@pytest.mark.parametrize(
    ("bounds", "shown"), [((5, 5), "5"), ((10**9, 10**9 + 1), "about 1.0 × 10^9"), ((10, 20), "10 to 20")]
)
def test_bounds(bounds, shown):
    assert count_of(*bounds).readable == shown
    assert count_of(*bounds).exact is (bounds[0] == bounds[1])


def test_answer_goes_over_whole():
    answer = Answer(
        ("a",),
        0.9,
        0.5,
        "0.05",
        None,
        (3, 10**20),
        2**70,
        ("a",),
        ("b", "c"),
        (PlausibleLabelSet(("a",), 0.5),),
        "a or so",
        12,
        "choose",
        "3 label-sets are plausible: choose one of them.",
        ("c",),
        ("c", "b"),
        unfamiliar=True,
        picture="<svg/>",
    )
    assert text_answer(answer).model_dump() == {
        "decision": "choose",
        "reason": "3 label-sets are plausible: choose one of them.",
        "labels": ["a"],
        "confidence": 0.9,
        "credibility": 0.5,
        "size": {"lower": "3", "upper": "1" + "0" * 20, "exact": False, "readable": "3 to 1.0 × 10^20"},
        "certain": ["a"],
        "open": ["b", "c"],
        "n_more_open": 12,
        "assign": ["c"],
        "consider": ["c", "b"],
        "unfamiliar": True,
        "top": [{"labels": ["a"], "p_value": 0.5}],
        "description": "a or so",
        "category": None,
        "picture": "<svg/>",
    }


@pytest.mark.parametrize(
    ("body", "level"),
    [
        ('{"text": "a"}', ("significance", None)),
        ('{"texts": ["a"], "significance": 0.07}', ("significance", 0.07)),
        ('{"texts": ["a"], "significance": ".070"}', ("significance", ".070")),
        ('{"text": "a", "confidence_level": "0.9"}', ("confidence_level", "0.9")),
    ],
)
def test_levels_are_kept_as_written(body, level):
    request = PredictRequest.model_validate_json(body)
    assert request.level == level
    assert request.all_texts == ["a"]


def test_whole_numbers_may_be_written_with_a_point():
    assert PredictRequest.model_validate_json('{"text": "a", "top": 3.0}').top == 3


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"text": "a", "texts": ["b"]}',
        '{"texts": []}',
        '{"text": null, "texts": ["a"]}',
        '{"text": "a", "significance": null}',
        '{"texts": [1]}',
        '{"texts": "a"}',
        '{"text": "\\ud800"}',
        '{"text": "a", "significance": 0}',
        '{"text": "a", "significance": 1}',
        '{"text": "a", "significance": NaN}',
        '{"text": "a", "significance": "1e-99999999"}',
        '{"text": "a", "significance": "0.0"}',
        '{"text": "a", "significance": true}',
        '{"text": "a", "significance": 0.1, "confidence_level": 0.9}',
        '{"text": "a", "top": -1}',
        '{"text": "a", "top": 1.5}',
        '{"text": "a", "other": 1}',
    ],
)
def test_requests_that_are_refused(body):
    with pytest.raises(ValidationError):
        PredictRequest.model_validate_json(body)
