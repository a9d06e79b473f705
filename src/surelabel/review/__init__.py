"""Reviews: queues of texts, decisions in a database, and what they teach.

`ReviewStore` keeps texts and decisions, `add_texts` answers the texts of a file and adds them, `export_decisions`
writes what was decided, `figures` sums it up, and `surelabel.review.learn` trains the next generation of a model.
`surelabel.service` shows the queues in a browser.
"""

from surelabel._core.extras import require

require("sqlalchemy", "review", "A review")

from surelabel.review.export import export_decisions, export_rows, exported_bytes  # noqa: E402
from surelabel.review.figures import ReviewFigures, Share, figures  # noqa: E402
from surelabel.review.incoming import AddedTexts, ReviewSettings, add_texts  # noqa: E402
from surelabel.review.queues import QUEUES, Counts, Decision, NewText, ReviewText  # noqa: E402
from surelabel.review.store import ReviewStore  # noqa: E402

__all__ = [
    "QUEUES",
    "AddedTexts",
    "Counts",
    "Decision",
    "NewText",
    "ReviewFigures",
    "ReviewSettings",
    "ReviewStore",
    "ReviewText",
    "Share",
    "add_texts",
    "export_decisions",
    "export_rows",
    "exported_bytes",
    "figures",
]
