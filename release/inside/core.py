"""What must work with no extra installed, and what must name the extra that is missing."""

import subprocess
import sys
import tempfile
from pathlib import Path

import surelabel

rows = [[0.9, 0.2, 0.1], [0.1, 0.8, 0.3], [0.7, 0.6, 0.1], [0.2, 0.3, 0.9]] * 25
labels = [[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]] * 25
predictor = surelabel.ConformalLabelSets(surelabel.LogLoss(), label_names=["oil", "trade", "gold"])
predictor.calibrate(rows, labels)
with tempfile.TemporaryDirectory() as folder:
    predictor.save(Path(folder) / "predictor.npz")
    again = surelabel.ConformalLabelSets.load(Path(folder) / "predictor.npz")
plausible = again.predict_set([[0.8, 0.3, 0.1]], significance=0.1)[0]
assert {"oil"} in plausible
assert plausible.size == predictor.predict_set([[0.8, 0.3, 0.1]], significance=0.1)[0].size
filing = surelabel.Automation(max_wrong=0.1).calibrate(rows, labels)
assert filing.decide(rows).dtype == bool

for name in ("text", "plots", "service"):
    try:
        module = getattr(surelabel, name)
        for public in module.__all__:
            getattr(module, public)
    except ImportError as error:
        if "surelabel[" not in str(error):
            raise
command = [sys.executable, "-m", "surelabel"]
assert subprocess.run([*command, "--version"], check=False, capture_output=True).returncode == 0
help_page = subprocess.run([*command, "--help"], check=False, capture_output=True, text=True)
assert help_page.returncode == 5
assert "surelabel[cli]" in help_page.stderr
print("the core works without extras")
