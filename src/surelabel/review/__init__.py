"""Reviews: queues of texts, decisions in a database, and what they teach.

`ReviewStore` keeps texts and decisions, `add_texts` answers the texts of a file and adds them, `export_decisions`
writes what was decided, `learn` trains the next generation of a model. `surelabel.service` shows the queues.
"""

from surelabel._core.extras import require

require("sqlalchemy", "review", "A review")

from surelabel.review.queues import QUEUES, Counts, Decision, NewText, ReviewText  # noqa: E402
from surelabel.review.store import ReviewStore  # noqa: E402

__all__ = ["QUEUES", "Counts", "Decision", "NewText", "ReviewStore", "ReviewText"]
