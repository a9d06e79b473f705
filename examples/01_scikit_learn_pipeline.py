"""Make your own scikit-learn pipeline say when it is sure: any classifier with `predict_proba` will do.

python examples/01_scikit_learn_pipeline.py                     # made-up texts, a few seconds
python examples/01_scikit_learn_pipeline.py --corpus reuters20  # real texts
"""

import argparse

import pandas
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from surelabel import ConformalMultilabelClassifier, LogLoss, corpora

parser = argparse.ArgumentParser()
parser.add_argument("--corpus", default="synthetic", help="a name of surelabel.corpora.available(), or a CSV file")
corpus = corpora.load(parser.parse_args().corpus)
train, calibration, test = (corpus.part(name) for name in ("train", "calibration", "test"))

# Your own pipeline. Nothing in it knows about conformal prediction.
pipeline = make_pipeline(
    TfidfVectorizer(sublinear_tf=True, min_df=2),
    OneVsRestClassifier(LogisticRegression(C=20)),
)

# Labels are 0 and 1, one column per label. The columns of a data frame name them.
labels = pandas.DataFrame(train.labels, columns=corpus.label_names)

# `fit` fits the pipeline. `calibrate` needs texts that the pipeline has not seen: on its own training texts a
# classifier is too sure, and the guarantee would be lost.
model = ConformalMultilabelClassifier(pipeline, LogLoss())
model.fit(train.texts, labels).calibrate(calibration.texts, calibration.labels)

# The best guess for each text, with its confidence and credibility.
forced = model.predict_forced(test.texts)
right = model.score(test.texts, test.labels)
print(f"{len(test.texts):,} test texts, {len(corpus.label_names)} labels: {right:.0%} predicted exactly")

# All plausible label-sets, if 5 % of the true ones may be missed.
sets = model.predict_set(test.texts, significance=0.05)
missed = 1 - sets.contains(test.labels).mean()
print(f"at significance 0.05: {missed:.1%} missed, {sets.sizes().mean():.1f} label-sets per text")

# The text that the model is least sure about, and what it can still say about it.
row = int(forced.confidence.argmin())
print(f"\nleast sure: {test.texts[row][:60]}...")
print(f"truth: {', '.join(sorted(test.label_sets[row]))}")
print(f"plausible: {sets[row].describe()}")
for label_set, p_value in sets[row].top(3):
    print(f"  {p_value:.2f}  {', '.join(sorted(label_set))}")
