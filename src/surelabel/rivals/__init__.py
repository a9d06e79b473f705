"""Other ways to predict label-sets with a guarantee, under one protocol, for honest comparison.

A rival is calibrated with probabilities (or features) and labels, and gives for each new text a set of label-sets at a
significance. All have the same candidates, count exactly, and say what they guarantee: not all guarantee the same.

| rival | what it guarantees |
|---|---|
| `LabelPowerset` | the label-set, exactly: this package's method |
| `SeenPowerset` | the label-set, as far as it was seen before |
| `BonferroniRelevance` | the label-set, too cautiously |
| `PerLabelRelevance` | each label for itself |
| `InstanceReproduction` | each true label for itself |
| `TransductiveRidge` | the label-set, exactly; needs no calibration part |
| `CrossConformalRidge` | the label-set, up to twice the significance |
| `RecallControl` | the mean share of true labels that are found |

Examples
--------
>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> probabilities = rng.random((500, 3))
>>> labels = rng.random((500, 3)) < probabilities
>>> sets = BonferroniRelevance().calibrate(probabilities, labels).predict_set([[0.99, 0.01, 0.4]], significance=0.2)
>>> sets.sizes().tolist(), sets.contains([[1, 0, 1]]).tolist()
([2], [True])
>>> from surelabel import rivals
>>> rivals.NOTHING_OF_LABEL_SETS in rivals.PerLabelRelevance.guarantee
True
"""

from surelabel.rivals.powerset import LabelPowerset, SeenPowerset
from surelabel.rivals.protocol import NOTHING_OF_LABEL_SETS, ListedSets, ProductSets, Rival, SetsOfTexts, sets_at
from surelabel.rivals.relevance import BonferroniRelevance, InstanceReproduction, PerLabelRelevance, RecallControl
from surelabel.rivals.ridge import CrossConformalRidge, TransductiveRidge

__all__ = [
    "NOTHING_OF_LABEL_SETS",
    "BonferroniRelevance",
    "CrossConformalRidge",
    "InstanceReproduction",
    "LabelPowerset",
    "ListedSets",
    "PerLabelRelevance",
    "ProductSets",
    "RecallControl",
    "Rival",
    "SeenPowerset",
    "SetsOfTexts",
    "TransductiveRidge",
    "sets_at",
]
