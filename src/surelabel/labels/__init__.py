"""Labels: label-sets as users see them, shortlists, constraints on valid label-sets."""
