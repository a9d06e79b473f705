"""The extra `stems` alone: the linear classifier on the stems of words."""

from surelabel import text


def main() -> None:
    """Train on some forms of words, and know others."""
    texts = ["the farmers harvested wheat", "a dollar was traded"] * 20
    classifier = text.make("linear", language="english", min_texts=1).fit(texts, [[1, 0], [0, 1]] * 20)
    grain, money = classifier.predict_proba(["harvesting", "trading dollars"])
    assert grain[0] > grain[1]
    assert money[1] > money[0]


if __name__ == "__main__":
    main()
