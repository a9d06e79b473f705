"""What the neural classifiers minimise: the cross-entropy, or a loss that balances rare labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = ["BalancedLoss", "loss_and_logits"]

# Of Wu et al. (2020), with the centre that Huang et al. (2021) chose for Reuters.
_FLOOR, _STEEPNESS, _CENTRE = 0.1, 10.0, 0.9
_SHIFT, _TOLERANCE = 0.05, 2.0


class BalancedLoss(nn.Module):
    """The distribution-balanced loss with negative-tolerant regularisation (Wu et al., ECCV 2020, without focus).

    With n_i of N training texts having label i, and y_k the labels of text k,

        r_ki = (1 / n_i) / sum_j y_kj / n_j            how rare i is beside the labels of the text
        w_ki = 0.1 + sigmoid(10 (r_ki - 0.9))          its weight; 1.1 if the text has no labels
        s_ki = z_ki - 0.05 log((N - n_i) / n_i)        the logit, shifted for rare labels
        loss = mean of w_ki (y_ki log(1 + e^-s_ki) + (1 - y_ki) log(1 + e^(2 s_ki)) / 2)

    The weights keep a frequent label that comes with a rare one from counting twice; texts without a label, once their
    logit is low, soon stop to push it lower. Probabilities are distorted by it: correct them by `Recalibration`.

    Parameters
    ----------
    labels : bool (n_texts, n_labels), dense or CSR
        Of the training texts.
    """

    inverse: torch.Tensor
    shift: torch.Tensor

    def __init__(self, labels: Any) -> None:
        super().__init__()
        counts = np.asarray(labels.sum(axis=0), dtype=np.float64).ravel()
        odds = (labels.shape[0] - counts + 0.5) / (counts + 0.5)
        # Not persistent: prediction has no loss, and a saved classifier holds no counts.
        self.register_buffer("inverse", torch.tensor(1 / np.maximum(counts, 1.0)).float(), persistent=False)
        self.register_buffer("shift", torch.tensor(_SHIFT * np.log(odds)).float(), persistent=False)

    def forward(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the loss of logits (B, n_labels) for labels of 0 and 1, (B, n_labels)."""
        rarity = self.inverse / (labels @ self.inverse.to(labels.dtype)).unsqueeze(1)
        weights = _FLOOR + torch.sigmoid(_STEEPNESS * (rarity - _CENTRE))
        shifted = logits - self.shift
        positive = nn.functional.softplus(-shifted)
        negative = nn.functional.softplus(_TOLERANCE * shifted) / _TOLERANCE
        return (weights * torch.where(labels > 0, positive, negative)).mean()


def loss_and_logits(
    logits: torch.Tensor, labels: torch.Tensor | None, loss: nn.Module | None = None
) -> dict[str, torch.Tensor]:
    """Return what Trainer expects: logits, and the loss (cross-entropy if None) if labels are given."""
    if labels is None:
        return {"logits": logits}
    minimised = nn.functional.binary_cross_entropy_with_logits if loss is None else loss
    return {"loss": minimised(logits.float(), labels), "logits": logits}
