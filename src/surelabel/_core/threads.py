"""Work over blocks of rows, on threads: results do not depend on how many."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")

# Rows per task: long enough to hide the cost of a task, short enough to keep their costs in the cache.
BLOCK_ROWS = 1024


def threads_to_use(n_jobs: int | None) -> int:
    """Return a number of threads: as asked, else SURELABEL_NUM_THREADS, else the cores this process may use."""
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    setting = os.environ.get("SURELABEL_NUM_THREADS", "")
    if setting.isdigit() and int(setting) > 0:
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over_rows(work: Callable[[slice], _Result], n_rows: int, n_jobs: int | None) -> list[_Result]:
    """Call `work` on blocks of rows, on threads if there are several blocks; return results in order."""
    # Kernels release the GIL. Blocks do not depend on the number of threads, nor rows on each other: nor do results.
    blocks = [slice(start, min(start + BLOCK_ROWS, n_rows)) for start in range(0, n_rows, BLOCK_ROWS)]
    workers = min(threads_to_use(n_jobs), len(blocks)) if len(blocks) > 1 else 1
    if workers == 1:
        return [work(block) for block in blocks]
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, blocks))
