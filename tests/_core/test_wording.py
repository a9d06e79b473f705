import hypothesis
import pytest
from hypothesis import strategies as st

from surelabel._core.wording import (
    at_most_words,
    bounds_words,
    count_words,
    label_sets_words,
    number_word,
    printable,
    share_words,
    terminal_words,
)


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (1, "1"),
        (9_999_999, "9,999,999"),
        (10**7, "1.0 × 10^7"),
        (99_499_999, "9.9 × 10^7"),
        (99_500_000, "1.0 × 10^8"),
        (12_345_678_901_234_567, "1.2 × 10^16"),
        (2**1000, "1.1 × 10^301"),
        (10**400, "1.0 × 10^400"),
        (10**4000 - 1, "1.0 × 10^4000"),
        (5.68e16, "5.7 × 10^16"),
        (1.7976931348623157e308, "1.8 × 10^308"),
        (float("inf"), "over 10^308"),
        (0.0, "0"),
        (0.0123, "0.012"),
        (12_345, "12,345"),
        (1.2e-5, "1.2 × 10^-5"),
        (3.14159e-7, "3.1 × 10^-7"),
        (1.0, "1"),
        (1.5, "1.50"),
        (99.994, "99.99"),
        (123.4, "123"),
        (-123_456_789, "-1.2 × 10^8"),
    ],
)
def test_numbers_are_readable(number, shown):
    assert count_words(number) == shown
    assert count_words(2**20_000) == "4.0 × 10^6020"


@hypothesis.given(st.integers(10**7, 10**320))
def test_readable_numbers_are_within_half_a_digit(number):
    digits, _, exponent = count_words(number).partition(" × 10^")
    shown = int(digits.replace(".", "")) * 10 ** (int(exponent) - 1)
    assert 1 <= float(digits) < 10
    assert 2 * abs(shown - number) <= 10 ** (int(exponent) - 1)


@pytest.mark.parametrize(
    ("bounds", "shown"),
    [
        ((5, 5), "5"),
        ((10, 20), "10 to 20"),
        ((10**20, 10**20 + 1), "about 1.0 × 10^20"),
        ((10**999, 10**999 + 1), "about 1.0 × 10^999"),
    ],
)
def test_bounds_are_written_once_if_they_look_equal(bounds, shown):
    assert bounds_words(*bounds) == shown


@pytest.mark.parametrize(
    ("write", "given", "shown"),
    [
        (printable, ["oil\x00"], "oil\N{REPLACEMENT CHARACTER}"),
        (terminal_words, ["oil\x1b[2J\n"], "oil\N{REPLACEMENT CHARACTER}[2J\n"),
        (number_word, [1], "one"),
        (number_word, [12], "12"),
        (at_most_words, [12.3401, 12.3402], "12.34"),
        (at_most_words, [10.0, 10**12], "at most 1.0 × 10^12"),
        (label_sets_words, [1, 1], "1 label-set"),
        (label_sets_words, [2, 2], "2 label-sets"),
        (share_words, [0.617, 0.617], "62 %"),
        (share_words, [0.001, 0.001], "under 1 %"),
        (share_words, [0.5, 0.61], "50 to 61 %"),
        (share_words, [1.0, 1.0], "100 %"),
    ],
)
def test_words_for_people(write, given, shown):
    assert write(*given) == shown
