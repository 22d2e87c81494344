"""Ctrl-C and SIGTERM while a worker is joined: the first drains, the second stops."""
from __future__ import annotations

import os
import signal
import threading
from typing import Any, Dict

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class DrainOnSignal:
    """Installs handlers in the main thread; elsewhere it does nothing. `remove` restores what was there.

    Forked children, such as the workers of a DataLoader, inherit the handlers. They ignore SIGINT, since their parent ends
    them after the drain, and SIGTERM does to them what it did before.
    """

    def __init__(self) -> None:
        self.drain = False
        self._owner = os.getpid()
        self._previous: Dict[int, Any] = {}

    def install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            self._previous[number] = signal.signal(number, self._handle)

    def remove(self) -> None:
        if threading.current_thread() is not threading.main_thread() or os.getpid() != self._owner:
            return
        for number, previous in self._previous.items():
            if signal.getsignal(number) == self._handle:
                signal.signal(number, previous if previous is not None else signal.SIG_DFL)
        self._previous = {}

    def _handle(self, number: int, frame: Any) -> None:
        if os.getpid() != self._owner:
            if number != signal.SIGINT:
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)
            return
        if not self.drain:
            self.drain = True
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            raise SystemExit(128 + number)
