"""Ctrl-C and SIGTERM while workers are joined: the first drains every open run of the process, the second stops."""
from __future__ import annotations

import os
import signal
import threading
import weakref
from typing import Any, List, Optional

from .errors import Cancelled

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class DrainOnSignal:
    """One run's wish to drain on a signal. All open runs of the process share a handler, which the first one installs in the
    main thread. When the last of them closes, in any order, the handler that was there before is restored.

    A run of another thread installs nothing, but drains with the others. Forked children, such as the workers of a DataLoader,
    inherit the handlers. They ignore SIGINT, since their parent ends them after the drain, and SIGTERM does to them what it did
    before.
    """

    _open: "weakref.WeakSet[DrainOnSignal]" = weakref.WeakSet()  # a run that is dropped without close() leaves it too

    def __init__(self) -> None:
        self.drain = False
        self.number: Optional[int] = None  # of the signal that asked for it
        self._owner = os.getpid()
        self._in_main_thread = False

    def install(self) -> None:
        self._in_main_thread = threading.current_thread() is threading.main_thread()
        DrainOnSignal._open.add(self)
        if not self._in_main_thread:
            return
        for number in SIGNALS:
            if not _is_ours(signal.getsignal(number)):
                _Handler(number)

    def remove(self) -> None:
        if os.getpid() != self._owner or self not in DrainOnSignal._open:
            return
        DrainOnSignal._open.discard(self)
        if threading.current_thread() is not threading.main_thread() or any(run._in_main_thread for run in DrainOnSignal.open_runs()):
            return
        for number in SIGNALS:
            handler: Any = signal.getsignal(number)
            while _is_ours(handler):
                handler = handler.restore()

    def interruption(self, text: str) -> BaseException:
        """What ends the caller's program where there is nothing to push: the exception that the signal is without us."""
        if self._in_main_thread and self.number == signal.SIGINT:
            return KeyboardInterrupt(text)
        if self._in_main_thread and self.number is not None:
            return SystemExit(128 + self.number)
        return Cancelled(text)

    @classmethod
    def open_runs(cls) -> List["DrainOnSignal"]:
        """Those of this process: a forked child inherits the list."""
        return [run for run in list(cls._open) if run._owner == os.getpid()]


class _Handler:
    """The handler of one signal, from its creation on. It knows the one that it replaced."""

    def __init__(self, number: int):
        self.owner = os.getpid()
        self._number = number
        self._previous: Any = signal.signal(number, self)

    def restore(self) -> Any:
        """The handler that is there now."""
        previous = self._previous if self._previous is not None else signal.SIG_DFL
        signal.signal(self._number, previous)
        return previous

    def __call__(self, number: int, frame: Any) -> None:
        if os.getpid() != self.owner:
            if number != signal.SIGINT:
                self._default(number)
            return
        runs = DrainOnSignal.open_runs()
        training = [run for run in runs if not run.drain]
        for run in training:
            run.drain, run.number = True, number
        if training:
            return
        if not runs:
            self._pass_on(number, frame)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            raise SystemExit(128 + number)

    def _pass_on(self, number: int, frame: Any) -> None:
        """Another handler was installed over this one, or another thread closed the last run: so this one is still there."""
        if callable(self._previous):
            self._previous(number, frame)
        elif self._previous != signal.SIG_IGN:
            self._default(number)

    @staticmethod
    def _default(number: int) -> None:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _is_ours(handler: Any) -> bool:
    return isinstance(handler, _Handler) and handler.owner == os.getpid()
