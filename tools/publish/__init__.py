"""The tables and figures on README and the pages under docs/, made from the files under `results/` alone.

`make publish` fills the marked places of these pages: what is between ``<!-- NAME: made by `make publish` -->`` and
``<!-- /NAME -->``. The same result files give the same bytes. A place whose result file is missing is left empty.
"""
