"""The band that chance explains: against simulation, and the verdicts that follow."""

import numpy as np
import pytest

from surelabel.evaluation.bands import error_band, with_verdict
from surelabel.exceptions import InvalidInputError


def test_band_of_a_perfect_calibration_is_binomial():
    lower, upper = error_band("0.05", 1000)
    assert (lower, upper) == (0.033, 0.069)


def test_band_is_wider_with_few_calibration_texts():
    widths = [np.diff(error_band("0.1", 500, n))[0] for n in (99, 999, 99_999)]
    assert widths[0] > widths[1] > widths[2]


def test_band_holds_in_simulation():
    rng = np.random.default_rng(0)
    n_calibration, n_texts = 99, 200
    calibration = np.sort(rng.random((2000, n_calibration)), axis=1)
    new = rng.random((2000, n_texts))
    # The 10th largest of 99 scores is the threshold at significance 0.1.
    errors = (new > calibration[:, [-10]]).mean(axis=1)
    lower, upper = error_band("0.1", n_texts, n_calibration)
    inside = ((errors >= lower) & (errors <= upper)).mean()
    assert 0.98 <= inside <= 1.0


@pytest.mark.parametrize(("error", "verdict"), [(0.05, "held"), (0.06, "chance"), (0.09, "above")])
def test_verdicts(error, verdict):
    assert with_verdict(error, "0.05", 1000, 999)[2] == verdict


def test_edges():
    assert error_band("0.01", 10, 5) == (0.0, 0.0)
    with pytest.raises(InvalidInputError):
        error_band("0.05", 0)
