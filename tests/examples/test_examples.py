"""Every file of `examples/` runs as a reader would run it, and says what it is there to say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples"
TIME_LIMIT = 400

# What each must print. A file that is not here fails a test below.
ESSENTIAL = {
    "01_scikit_learn_pipeline.py": [r"at significance 0\.05: \d\.\d% missed", r"plausible: .*label-sets?"],
    "02_transformers_model.py": [r"at significance 0\.1: \d+\.\d% missed", r"label-sets per text: mean \d+\.\d of 64"],
    "03_choose_significance_later.ipynb": [r"0\.05: +\d\.\d% missed", r"never asked before: True"],
    "04_triage_queue.py": [r"file +\d+ +9\d%", r"choose: \d label-sets are plausible: choose one of them\."],
    "05_compare_measures.py": [r"Mahalanobis +0\.05 +\d\.\d%", r"smallest sets at 0\.05: (L8|LogLoss|Penalised)"],
    "06_batch_on_a_cluster.py": [r"2,000 answers in 8 partitions", r"already finished: 8 of 8"],
    "07_call_the_service.py": [r"best guess: trade", r"422 ", r"curl -s http://127\.0\.0\.1", r"certain: oil"],
}
_RUN_NOTEBOOK = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(notebook, kernel_name="python3").execute()
for cell in notebook.cells:
    for output in cell.get("outputs", []):
        print(output.get("text", ""), *output.get("data", {}))
"""


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment with this source, without a network's help, frugal with threads."""
    own = {"PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}
    return {**os.environ, **own}


def test_every_example_is_run_and_listed():
    found = {path.name for path in FOLDER.iterdir() if path.suffix in {".py", ".ipynb", ".sh"}}
    assert found == set(ESSENTIAL)
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([^)]+\.(?:py|ipynb|sh))\)", listed)) == found


def _table(page: Path) -> list[str]:
    """Return the rows of a page's table, files by their name alone."""
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", row) for row in rows]


def test_the_site_lists_what_the_folder_lists():
    assert _table(ROOT / "docs" / "examples.md") == _table(FOLDER / "README.md")


@pytest.mark.parametrize("name", ESSENTIAL)
def test_example_runs(name, tmp_path):
    program = ["-c", _RUN_NOTEBOOK] if name.endswith(".ipynb") else []
    done = subprocess.run(
        [sys.executable, *program, str(FOLDER / name)],
        cwd=ROOT,
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for pattern in ESSENTIAL[name]:
        assert re.search(pattern, done.stdout), done.stdout
    assert not list(tmp_path.glob("tmp*")), "it leaves files behind"


@pytest.mark.parametrize("name", [name for name in ESSENTIAL if name.endswith(".py")])
def test_example_is_short(name):
    assert len((FOLDER / name).read_text(encoding="utf-8").splitlines()) <= 80


def test_the_notebook_keeps_its_outputs():
    notebook = nbformat.read(FOLDER / "03_choose_significance_later.ipynb", 4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output.output_type == "error"]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    assert all(cell.get("execution_count") for cell in notebook.cells if cell.cell_type == "code")
