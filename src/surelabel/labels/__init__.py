"""Labels: label-sets as users see them, sparse probabilities, constraints on valid label-sets."""
