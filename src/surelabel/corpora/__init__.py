"""Corpora: texts with label-sets, read from many forms into one, with parts to train, calibrate and test on.

Examples
--------
>>> from surelabel import corpora
>>> corpus = corpora.load("synthetic", seed=0)
>>> corpus
Corpus 'synthetic': 2,000 texts, 24 labels (train 1,100, validation 200, calibration 300, test 400)
>>> corpus.part("calibration").labels.shape
(300, 24)
>>> corpora.PARTS
('train', 'validation', 'calibration', 'test')
>>> corpora.PAPER_STATISTICS["reuters"].max_cardinality
15
"""

from surelabel.corpora.aapd import read_aapd
from surelabel.corpora.catalogue import available, is_at_hand, load
from surelabel.corpora.corpus import PARTS, Corpus, Part, Provenance
from surelabel.corpora.ctdc import read_ctdc
from surelabel.corpora.files import cache_folder
from surelabel.corpora.goemotions import read_goemotions
from surelabel.corpora.overlap import seen_before
from surelabel.corpora.reduction import reduced
from surelabel.corpora.reuters import read_reuters
from surelabel.corpora.reuters_source import find_reuters
from surelabel.corpora.splits import Split, split
from surelabel.corpora.synthetic import generate_synthetic
from surelabel.corpora.tables import PAPER_STATISTICS, Statistics, statistics, statistics_markdown, statistics_table
from surelabel.corpora.tabular import read_table

__all__ = [
    "PAPER_STATISTICS",
    "PARTS",
    "Corpus",
    "Part",
    "Provenance",
    "Split",
    "Statistics",
    "available",
    "cache_folder",
    "find_reuters",
    "generate_synthetic",
    "is_at_hand",
    "load",
    "read_aapd",
    "read_ctdc",
    "read_goemotions",
    "read_reuters",
    "read_table",
    "reduced",
    "seen_before",
    "split",
    "statistics",
    "statistics_markdown",
    "statistics_table",
]
