"""The corpora table as the paper prints it, to stand beside ours."""

from __future__ import annotations

from surelabel.corpora.tables import Statistics

__all__ = ["PAPER_STATISTICS"]

PAPER_STATISTICS: dict[str, Statistics] = {
    "ctdc": Statistics(14690, 8565, 999, 2391, 2735, 60, 2.64, 275, 8),
    "ctdc20": Statistics(13702, 8032, 999, 2274, 2397, 20, 1.96, 269, 7),
    "reuters": Statistics(10788, 5770, 999, 3019, 1000, 90, 1.24, 165, 15),
    "reuters20": Statistics(9855, 5118, 999, 2738, 1000, 20, 1.16, 163, 7),
    "aapd": Statistics(55840, 48841, 4999, 1000, 1000, 54, 2.41, 164, 8),
    "aapd20": Statistics(52881, 45996, 4999, 944, 942, 20, 1.95, 165, 6),
}
