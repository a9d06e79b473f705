"""The extra `review` alone: a store, a decision, an export."""

import tempfile
from pathlib import Path

from surelabel import review


def main() -> None:
    """Decide about a text, and export what was decided."""
    folder = Path(tempfile.mkdtemp())
    with review.ReviewStore(folder / "reviews.sqlite") as store:
        offer = review.Offer("choose", "Two label-sets are plausible.", ("oil",))
        assert store.add([review.NewText("1", "Crude rose.", offer, "model")]) == 1
        (text,) = store.lease("ann", "choose")
        store.decide("a key", text.number, "ann", "edit", ["gas", "oil"])
        assert review.export(store, folder / "decided.csv") == 1
        assert review.export(store, folder / "decided.xlsx") == 1
    assert "gas" in (folder / "decided.csv").read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
