from surelabel.corpora import seen_before
from surelabel.corpora.overlap import text_hash


def test_case_and_white_space_do_not_matter():
    known = ["Grain prices ROSE.", "  ", "two\tlines\nhere"]
    asked = ["grain  prices rose.", "grain prices rose", "TWO lines here ", "", "\ud800"]
    assert seen_before(asked, known).tolist() == [True, False, True, False, False]


def test_nothing_known():
    assert seen_before(["a"], []).tolist() == [False]
    assert seen_before([], ["a"]).shape == (0,)


def test_different_texts_have_different_hashes():
    assert text_hash("Wheat  prices\nrise") == text_hash("wheat prices rise")
    assert len({text_hash(f"text {i}") for i in range(1000)}) == 1000
