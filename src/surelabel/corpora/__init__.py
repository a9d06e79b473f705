"""Corpora: texts with label-sets, read from many forms into one, with parts to train, calibrate and test on.

Examples
--------
>>> from surelabel import corpora
>>> corpus = corpora.load("synthetic")
>>> corpus.part("calibration").labels.shape
(200, 24)
"""

from surelabel.corpora.corpus import PARTS, Corpus, Provenance, text_hash
from surelabel.corpora.download import cache_folder
from surelabel.corpora.load import available, is_available_locally, load
from surelabel.corpora.split import draw_parts, halve_validation, reduce_labels, stratified_parts
from surelabel.corpora.synthetic import generate_synthetic
from surelabel.corpora.table import read_table
from surelabel.corpora.vocabulary import Vocabulary, read_vocabulary

__all__ = [
    "PARTS",
    "Corpus",
    "Provenance",
    "Vocabulary",
    "available",
    "cache_folder",
    "draw_parts",
    "generate_synthetic",
    "halve_validation",
    "is_available_locally",
    "load",
    "read_table",
    "read_vocabulary",
    "reduce_labels",
    "stratified_parts",
    "text_hash",
]
