"""Workers of a test run share compiled kernels: while one compiles a kernel, others that need it wait and then load it.

numba itself would let every worker compile the kernel.
"""

import contextlib
import fcntl

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

__all__ = ["compiled_by_one"]


@contextlib.contextmanager
def compiled_by_one(folder):
    """Hold a lock in a folder, one per kernel, while it is compiled or loaded."""
    plain = Dispatcher.compile

    def compile_alone(self, signature):
        if self.stats.cache_path is None:  # compiled as a part of a kernel, and not kept
            return plain(self, signature)
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}.lock"
        # numba's own lock comes first: a thread that waits for it must not hold a kernel that another one calls.
        with global_compiler_lock, (folder / name).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return plain(self, signature)

    Dispatcher.compile = compile_alone
    try:
        yield
    finally:
        Dispatcher.compile = plain
