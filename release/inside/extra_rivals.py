"""The extra `rivals` alone: recall control, which is MAPIE's."""

import numpy as np

from surelabel import rivals


def main() -> None:
    """Calibrate and predict."""
    rng = np.random.default_rng(0)
    probabilities = rng.random((300, 4))
    labels = rng.random((300, 4)) < probabilities
    sets = rivals.RecallControl().calibrate(probabilities[:250], labels[:250])
    assert len(sets.predict_set(probabilities[250:], significance=0.2).sizes()) == 50


if __name__ == "__main__":
    main()
