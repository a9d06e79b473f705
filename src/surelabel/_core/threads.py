"""Work on blocks of rows, on threads: kernels release the GIL, and results do not depend on the number of threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")
# Rows per task: long enough to hide the cost of a task, short enough to keep their costs in the cache.
BLOCK_ROWS = 512


def threads_to_use(n_jobs: int | None = None) -> int:
    """Return the number of threads: as asked, else SURELABEL_NUM_THREADS, else the cores this process may use."""
    if n_jobs is not None:
        return n_jobs
    setting = os.environ.get("SURELABEL_NUM_THREADS", "")
    if setting.isdigit() and int(setting) > 0:
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over_rows(
    work: Callable[[slice], Result], n_rows: int, n_jobs: int | None = None, step: int = BLOCK_ROWS
) -> list[Result]:
    """Call `work` on blocks of rows and return its results in order."""
    if n_rows <= step:
        return [work(slice(0, n_rows))]
    blocks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    workers = min(threads_to_use(n_jobs), len(blocks))
    if workers == 1:
        return [work(block) for block in blocks]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, blocks))
