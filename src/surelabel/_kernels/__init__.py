"""Compiled searches: arrays in, arrays out, one file a search.

Conventions: a row is one text; `absent` and `present` are its label costs, `(d,)` float64, >= 0; `lo` and `hi` are
the limits on the number of labels. A *total* is the correctly rounded sum of a label-set's costs
(`exact_sum.py`): it does not depend on the order of labels, so every search agrees on it to the last bit.
Searches add costs in their own order and ask for the total only within `band` of a threshold, where the order
of additions could decide.

Rows of different lengths are flat: row i has columns starts[i]..starts[i + 1] of arrays. Dense rows (n, d) are flat
rows of d columns (`exact_sum.row_starts`).

Label-sets are packed into `uint64` words, label 0 in the highest bit of word 0, so that comparing words
compares 0/1 rows lexicographically. All kernels release the GIL. None uses fastmath.

A call with a plain whole number, or a counter that starts as one, compiles a kernel once more for that very number:
constants that are passed on, and such counters, are `np.int64`. Arrays are copied by loops: numba's check of
shapes, in a copy of slices, takes longer to compile than most searches.
"""
