"""Label-sets as users see them."""

import numpy as np
from scipy.sparse import csr_array

from surelabel.labels.label_sets import label_indices, to_label_sets


def test_rows_become_indices_and_names():
    rows = np.array([[True, False, True], [False, False, False]])
    for labels in (rows, csr_array(rows)):
        assert label_indices(labels) == [[0, 2], []]
        assert to_label_sets(labels, ("corn", "grain", "wheat")) == [{"corn", "wheat"}, set()]
        assert to_label_sets(labels, None) == [{0, 2}, set()]
