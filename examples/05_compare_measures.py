"""Compare measures: all keep the same promise, but their sets differ in size.

python examples/05_compare_measures.py                     # made-up texts, seconds
python examples/05_compare_measures.py --corpus arxiv20    # minutes
"""

import argparse

from surelabel import LogLoss, LpNorm, Mahalanobis, choose_weights, compare, corpora, text
from surelabel.rivals import SeenPowerset

parser = argparse.ArgumentParser()
parser.add_argument("--corpus", default="synthetic")
parser.add_argument("--splits", type=int, default=5)
chosen = parser.parse_args()
small = {"n_texts": 1200, "validation": 0.25, "calibration": 0.25} if chosen.corpus == "synthetic" else {}
corpus = corpora.load(chosen.corpus, **small)
train, validation = corpus.part("train"), corpus.part("validation")


def read(part):
    """Return the texts of a part, cut to the first words if they are made up: else all measures find them easy."""
    return [" ".join(words.split()[:14]) for words in part.texts] if small else part.texts


# One classifier, run once: every measure starts from the same probabilities.
classifier = text.make("linear").fit(read(train), train.label_matrix, label_names=corpus.label_names)
parts = {}
for name in ("calibration", "test"):
    part = corpus.part(name)
    parts[name] = classifier.predict_proba(read(part)), part.labels
most = int(train.labels.sum(axis=1).max())

# Measures that learn from data learn from the validation part, never from calibration texts. Mahalanobis learns which
# errors go together; if none do, as with made-up texts, its metric shrinks to that of L2.
seen = classifier.predict_proba(read(validation)), validation.labels
chosen_weights = choose_weights(LogLoss(), train.labels, *seen, max_labels=most)
measures = {
    "L2": LpNorm(2),
    "L8": LpNorm(8),
    "LogLoss": LogLoss(),
    "Mahalanobis": Mahalanobis().fit(*seen),
    "Penalised": chosen_weights.measure,
}

# For each split, calibration and test texts are shuffled together and divided again. You can add rivals: this one only
# knows label-sets that training texts have.
rivals = [SeenPowerset(train.labels)]
comparison = compare(parts, measures, rivals, ["0.05", "0.1"], n_splits=chosen.splits, max_labels=most)

print(
    f"{len(corpus.label_names)} labels, {comparison.n_calibration} calibration texts, {comparison.n_splits} re-splits"
)
print(f"{'measure':<18}{'e':>6}{'missed':>9}{'label-sets per text':>20}")
for row in comparison.rows():
    print(f"{row.method:<18}{row.significance:>6}{row.error[0]:>9.1%}{row.mean_size[0]:>20.2f}")
smallest = min(measures, key=lambda name: comparison.row(name, "0.05").mean_size[0])
print(f"smallest sets at 0.05: {smallest}")
