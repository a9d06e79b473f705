"""A user's program, for `mypy --strict` against what is installed."""

from pathlib import Path

import numpy as np

import surelabel

predictor: surelabel.ConformalLabelSets = surelabel.ConformalLabelSets(surelabel.LpNorm(2))
predictor = predictor.calibrate(np.array([[0.9, 0.1]]), np.array([[1, 0]]))
sets: surelabel.PredictionSets = predictor.predict_set(np.array([[0.9, 0.1]]), significance=0.5)
sizes = sets.sizes()
best = predictor.predict(np.array([[0.9, 0.1]])).label_sets[0]
predictor.save(Path("predictor.npz"))
filed = surelabel.Automation(max_wrong="0.05").decide(np.array([[0.9, 0.1]])).sum()
