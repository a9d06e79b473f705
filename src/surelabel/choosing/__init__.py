"""Settings of measures, chosen on validation texts for the smallest prediction sets."""

from surelabel.choosing.mixture import choose_mixture
from surelabel.choosing.weights import ChosenWeights, choose_weights

__all__ = ["ChosenWeights", "choose_mixture", "choose_weights"]
