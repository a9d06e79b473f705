"""What formats this repository's own README, docs and tables, from the files under `results/` alone.

`make publish` (or `PYTHONPATH=tools python -m publish`) writes `results/tables` and `results/figures`, then fills the
marked places of README.md and docs/: between ``<!-- NAME: made by `make publish` -->`` and ``<!-- /NAME -->``, where
NAME is a table (`beside-paper`), or `results`. The same result files give the same bytes.
"""
