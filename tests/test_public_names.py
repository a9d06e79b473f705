"""The public surface, and what importing it costs."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import surelabel

ROOT = Path(__file__).parents[1]
NAMES = """
Automation Bundle ByCardinality ByGroup ConformalLabelSets ConformalMultilabelClassifier ExchangeabilityWatch
ForcedPredictions LabelConstraints LogLoss LpNorm Mixture OnlineConformal PredictionSet PredictionSets Recalibration
SeparableMeasure Shortlists TagBounds __version__ choose_mixture corpora exceptions load_bundle metrics plots
predict_dataset report review service text train
"""
HEAVY = {"numpy", "scipy", "sklearn", "numba", "torch", "transformers", "matplotlib", "fastapi", "pandas", "dask"}


def test_the_public_names_are_these():
    assert sorted(surelabel.__all__) == sorted(NAMES.split())
    for name in surelabel.__all__:
        assert getattr(surelabel, name) is not None


def test_every_public_module_has_what_it_lists():
    for name in ("corpora", "exceptions", "metrics", "plots", "report", "review", "service", "text"):
        module = importlib.import_module(f"surelabel.{name}")
        assert all(hasattr(module, public) for public in module.__all__)


def test_every_public_name_is_in_the_reference():
    listed = "".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    named = set(re.findall(r"^::: surelabel\.(\w+)$", listed, flags=re.M))
    modules = {"corpora", "exceptions", "metrics", "plots", "report", "review", "service", "text"}
    assert set(surelabel.__all__) - modules - {"__version__"} <= named


def loaded_by(code):
    program = f"import sys\n{code}\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_else():
    own = {name for name in loaded_by("import surelabel") if name not in sys.stdlib_module_names}
    assert not own & HEAVY


def test_help_loads_nothing_heavy():
    code = "from typer.testing import CliRunner\nfrom surelabel.cli import app\n"
    code += "assert CliRunner().invoke(app, ['--help']).exit_code == 0"
    assert not loaded_by(code) & HEAVY
