"""What `import surelabel` gives, and what it does not load."""

import subprocess
import sys

import pytest

import surelabel


def test_public_names_are_pinned_and_sorted():
    assert surelabel.__all__ == [
        "Automation",
        "Bundle",
        "ByCardinality",
        "ByGroup",
        "ByRarity",
        "ConformalLabelSets",
        "ConformalMultilabelClassifier",
        "ExchangeabilityWatch",
        "ForcedPredictions",
        "LabelConstraints",
        "LogLoss",
        "LpNorm",
        "Mahalanobis",
        "Mixture",
        "OnlineConformal",
        "Penalised",
        "PredictionSet",
        "PredictionSets",
        "Recalibration",
        "SeparableMeasure",
        "SparseProbabilities",
        "TagBounds",
        "__version__",
        "choose_mixture",
        "choose_weights",
        "compare",
        "corpora",
        "exceptions",
        "load_bundle",
        "metrics",
        "plots",
        "predict_dataset",
        "report",
        "review",
        "rivals",
        "service",
        "text",
        "train",
    ]
    assert surelabel.__all__ == sorted(surelabel.__all__)
    assert dir(surelabel) == surelabel.__all__


def test_every_public_name_is_there():
    for name in surelabel.__all__:
        assert getattr(surelabel, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Conformal'"):
        surelabel.Conformal  # noqa: B018


def test_public_modules_have_sorted_names_that_exist():
    for module in (surelabel.exceptions, surelabel.metrics):
        assert module.__all__ == sorted(module.__all__)
        for name in module.__all__:
            assert hasattr(module, name)


@pytest.mark.parametrize("name", ["sklearn", "torch", "matplotlib", "numba", "pandas", "scipy", "transformers"])
def test_importing_the_package_does_not_load(name):
    code = f"import sys, surelabel; sys.exit({name!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_predicting_from_probabilities_does_not_load_scikit_learn_or_torch():
    code = (
        "import sys, surelabel\n"
        "p = surelabel.ConformalLabelSets().calibrate([[0.9, 0.2], [0.3, 0.6]], [[1, 0], [0, 1]])\n"
        "p.predict_set([[0.9, 0.2]], significance=0.5)[0].top(3)\n"
        "sys.exit('sklearn' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_conformalize_is_calibrate():
    assert surelabel.ConformalLabelSets.conformalize is surelabel.ConformalLabelSets.calibrate
