"""Digests of token files, compared on a thread while a loop trains: reading terabytes first would delay it for hours."""
from __future__ import annotations

import os
import threading
import weakref
from typing import List, Optional

from .errors import AtollError, DataLoss
from .token_file import TokenFile

LOOK_EVERY_S = 10.0  # whether a file was written to
_LOWEST_PRIORITY = 19


class BackgroundCheck:
    """Compares the digests of all files, then looks every LOOK_EVERY_S whether one was written to, and compares again.

    The thread has the lowest priority. It ends with the object, after the piece that it reads. A forked process has no thread.
    """

    def __init__(self, files: List[TokenFile]):
        self._process, self._found = os.getpid(), _Found()
        thread = threading.Thread(target=_run, args=(files, self._found), name="atoll-check-tokens", daemon=True)
        weakref.finalize(self, _end, self._process, self._found, thread)
        thread.start()

    @property
    def in_this_process(self) -> bool:
        return self._process == os.getpid()

    def check(self) -> None:
        """DataLoss that names the first file found to differ."""
        if self._found.problem is not None:
            raise DataLoss(self._found.problem)


class _Found:
    """What the thread shares; the thread must not keep the check alive."""

    def __init__(self) -> None:
        self.problem: Optional[str] = None
        self.stopped = False
        self.wake = threading.Event()


def verify(files: List[TokenFile], found: Optional[_Found] = None) -> None:
    """Compares the digests now. DataLoss names the first file that differs."""
    for file in files:
        file.verify(lambda: found is None or not found.stopped)


def _run(files: List[TokenFile], found: _Found) -> None:
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)
    except (AttributeError, OSError):
        pass  # not Linux, or not allowed: the check runs at the loop's priority
    compared = None
    while not found.stopped:
        # Before the comparison: what is written meanwhile is compared once more.
        modified = [file.modified_ns() for file in files]
        if modified != compared:
            compared = modified
            try:
                verify(files, found)
            except AtollError as problem:
                found.problem = str(problem)
                return
        found.wake.wait(LOOK_EVERY_S)


def _end(process: int, found: _Found, thread: threading.Thread) -> None:
    if os.getpid() != process:
        return  # in a fork, the thread of the parent may have the event's lock for ever
    found.stopped = True
    if thread is not threading.current_thread():  # that one may be within wake.wait(), whose lock set() would wait for
        found.wake.set()
        thread.join()
