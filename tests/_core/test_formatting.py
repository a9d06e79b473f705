import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel._core import formatting


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (1234, "1,234"),
        (9_999_999, "9,999,999"),
        (10**7, "1.0 × 10^7"),
        (56_800_000_000_000_000, "5.7 × 10^16"),
        (99_600_000, "1.0 × 10^8"),
        (-(10**8), "-1.0 × 10^8"),
        (2**2000, "1.1 × 10^602"),
        (0.5, "0.500"),
        (3.14159, "3.14"),
        (123.4, "123"),
        (0.00012, "1.2 × 10^-4"),
        (float("inf"), "over 10^308"),
    ],
)
def test_counts(number, text):
    assert formatting.count(number) == text


@given(st.integers(7, 400), st.integers(10, 99))
def test_large_counts_keep_two_digits(exponent, digits):
    written = formatting.count(digits * 10 ** (exponent - 1))
    assert written == f"{digits // 10}.{digits % 10} × 10^{exponent}"


def test_bounds_and_shares():
    assert formatting.bounds(3, 3) == "3"
    assert formatting.bounds(10**9, 10**9 + 1) == "about 1.0 × 10^9"
    assert formatting.bounds(5, 70) == "5 to 70"
    assert [formatting.percent(x) for x in (0, 0.004, 0.5, 0.996, 1)] == [
        "0 %",
        "under 1 %",
        "50 %",
        "over 99 %",
        "100 %",
    ]
    assert formatting.percent(0.1, 0.3) == "10 to 30 %"


@pytest.mark.parametrize("mark", ["\x1b", "\0", "\r", "\x9b", "\u202e", "\u2066", "\u200f", "\ud800", "\u2028"])
def test_plain_text_cannot_control_a_terminal(mark):
    assert formatting.plain(f"a{mark}b\nc") == "a\N{REPLACEMENT CHARACTER}b\nc"


def test_text_for_databases_and_encodings():
    assert "\0" not in formatting.printable("a\0b")
    assert formatting.encodable("a\ud800b") == "a?b"
    assert formatting.encodable("žluť") == "žluť"


def test_a_table_in_markdown():
    table = formatting.markdown_table(["name", "n"], [["a", "1"]])
    assert table == "| name | n |\n|---|---:|\n| a | 1 |"
