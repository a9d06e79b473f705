"""Verdicts, offers and the draw for the blind check."""

import dataclasses

import pytest

from surelabel.answers import Answer, PlausibleLabelSet
from surelabel.exceptions import InvalidInputError
from surelabel.review import Offer, offer_of
from surelabel.review.queues import hash_of, is_drawn, queue_of

TOP = tuple(PlausibleLabelSet((f"tag-{number}",), 0.9 - number / 20) for number in range(12))


def answer_of(size, **changes):
    answer = Answer(("tag-0",), 0.8, 0.9, "0.05", size, (size, size), 4_095, (), ("tag-0", "tag-1"), TOP[:size])
    return dataclasses.replace(answer, **changes)


def test_without_a_certificate_the_size_decides_and_nothing_is_filed():
    verdicts = {size: offer_of(answer_of(size)).verdict for size in (0, 1, 2, 9, 10, 10**30)}
    assert verdicts == {0: "read", 1: "choose", 2: "choose", 9: "choose", 10: "read", 10**30: "read"}
    assert offer_of(answer_of(2)).reason == "2 label-sets are plausible."
    assert "1.0 × 10^30 label-sets are plausible" in offer_of(answer_of(10**30)).reason


def test_at_most_nine_label_sets_are_offered_and_the_best_guess_if_none_is_plausible():
    assert len(offer_of(answer_of(12)).options) == 9
    assert offer_of(answer_of(0)).options == ((("tag-0",), 0.9),)


def test_of_a_long_list_of_tags_twenty_are_offered_with_the_count():
    tags = tuple(f"tag-{number}" for number in range(30, 0, -1))
    offer = offer_of(answer_of(12, decision="read", reason="Long.", consider=tags))
    assert offer.consider == (*tags[:20], "tag-0")  # the best guess is always there
    assert offer.n_considered == 30


def test_offers_survive_json():
    offer = offer_of(answer_of(3))
    assert Offer.from_dict(offer.to_dict()) == offer
    with pytest.raises(InvalidInputError, match="must be file, choose or read"):
        Offer("maybe", "", ())


def test_drawn_texts_go_to_the_blind_check_whatever_the_verdict():
    for verdict in ("file", "choose", "read"):
        assert queue_of(Offer(verdict, "", ()), is_blind=True) == "check"
    assert [queue_of(Offer(verdict, "", ()), is_blind=False) for verdict in ("file", "choose", "read")] == [
        "filed",
        "choose",
        "read",
    ]


def test_the_draw_depends_on_the_salt_and_is_a_share():
    names = [str(number) for number in range(20_000)]
    one, other = ([is_drawn(salt, name, "", 0.05) for name in names] for salt in (b"one", b"other"))
    assert 900 < sum(one) < 1_100
    both = sum(a and b for a, b in zip(one, other, strict=True))
    assert 25 < both < 80  # independent draws: about 50


def test_draws_and_hashes_stay_the_same_from_version_to_version():
    assert sum(is_drawn(b"salt", str(number), "", 0.1) for number in range(10_000)) == 1028
    assert hash_of("wheat")[:16] == "de6c334339ac3d32"
