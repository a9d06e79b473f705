"""Compiled loops: arrays in, arrays out.

A text is a row of *changes*: what having each label adds to the total of the empty label-set, in whole units, so that
every sum is exact. Rows are sorted, `changes[row, 0] <= changes[row, 1] <= ...`; a *place* is a position in a sorted
row. Kernels get their memory from the caller, as numba compiles functions that allocate nothing in half the time. None
calls itself: numba's cache cannot hold such functions.
"""

# The largest whole part of any total, and the change of a label that no candidate may have.
EVERYTHING, IMPOSSIBLE = 2**61, 2**62
