"""Without extras: calibrate, predict, save, load, the meta-estimator, a whole model; what extras bring is absent."""

import importlib.util
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import numpy as np

import surelabel

OF_EXTRAS = (
    "torch",
    "transformers",
    "matplotlib",
    "jinja2",
    "typer",
    "rich",
    "pandas",
    "pyarrow",
    "fastapi",
    "dask",
    "mapie",
)


def calibrated(rng: np.random.Generator) -> surelabel.ConformalLabelSets:
    """Return a predictor of four labels."""
    probabilities = rng.random((400, 4))
    labels = rng.random((400, 4)) < probabilities
    return surelabel.ConformalLabelSets(surelabel.LogLoss(), min_labels=0).calibrate(probabilities, labels)


def check_engine(folder: Path) -> None:
    """Predict, save and load: the same answers."""
    rng = np.random.default_rng(0)
    predictor = calibrated(rng)
    new = rng.random((5, 4))
    sets = predictor.predict_set(new, significance=0.1)
    assert all(0 <= size <= 16 for size in sets.sizes())
    assert sets[0].top(1)[0][0] == predictor.predict(new).label_sets[0]
    predictor.save(folder / "predictor.npz")
    again = surelabel.ConformalLabelSets.load(folder / "predictor.npz")
    assert list(again.predict_set(new, significance=0.1).sizes()) == list(sets.sizes())


def check_meta_estimator() -> None:
    """Fit, calibrate and predict with a scikit-learn classifier."""
    from sklearn.datasets import make_multilabel_classification
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    X, Y = make_multilabel_classification(n_samples=300, n_classes=4, random_state=0)
    model = surelabel.ConformalMultilabelClassifier(OneVsRestClassifier(LogisticRegression()), min_labels=0)
    model.fit(X[:200], Y[:200]).calibrate(X[200:280], Y[200:280])
    assert model.predict_set(X[280:], significance=0.2).contains(Y[280:]).mean() > 0.5


def check_model(folder: Path) -> None:
    """Train a linear model of the made-up corpus, save it, load it, ask it."""
    from surelabel import corpora
    from surelabel.models import TrainingSettings, train_to_folder

    corpus = corpora.load("synthetic")
    train_to_folder(corpus, folder, TrainingSettings(compared={}))
    test = corpus.part("test")
    sets = surelabel.load_bundle(folder).predict_set(test.texts, significance=0.1)
    assert 0.8 < sets.contains(test.labels).mean() < 1


def check_command_line() -> None:
    """Check that the version is printed, and that anything else says what to install."""
    script = Path(sysconfig.get_path("scripts")) / "surelabel"
    for command in ([sys.executable, "-m", "surelabel"], [str(script)]):
        version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert version.stdout == f"surelabel {surelabel.__version__}\n", version
        other = subprocess.run([*command, "demo"], capture_output=True, text=True, check=False)
        assert other.returncode == 5, other
        assert "pip install 'surelabel[cli]'" in other.stderr, other
        assert "Traceback" not in other.stderr, other


def main() -> None:
    """Run all; the folder for the model is the first argument."""
    found = [name for name in OF_EXTRAS if importlib.util.find_spec(name)]
    assert not found, f"installed without an extra: {found}"
    check_engine(Path())
    check_meta_estimator()
    check_model(Path(sys.argv[1]))
    check_command_line()
    loaded = sorted(set(OF_EXTRAS) & set(sys.modules))
    assert not loaded, loaded


if __name__ == "__main__":
    warnings.simplefilter("error")
    main()
