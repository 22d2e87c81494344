"""The live status, without a line of the user's: one line that is updated on a terminal, plain lines elsewhere."""
from __future__ import annotations

import math
import sys
import time
from typing import Any, Callable, Dict, Optional, TextIO

TERMINAL_SECONDS = 0.25
PLAIN_SECONDS = 30.0


def on_terminal(out: Optional[TextIO] = None) -> bool:
    """Whether standard error, or `out`, is a terminal."""
    out = out or sys.stderr
    return hasattr(out, "isatty") and out.isatty()


class Progress:
    """Prints to standard error. `choice`: None decides by the terminal, False prints nothing, True prints plain lines at least."""

    def __init__(self, choice: Optional[bool], status: Callable[[], Dict[str, Any]], out: Optional[TextIO] = None):
        self._out = out or sys.stderr
        self._status = status
        self._enabled = choice is not False
        self._live = self._enabled and on_terminal(self._out)
        self._due = 0.0
        self._width = 0
        self._waits = ""

    def show(self) -> None:
        """Prints the status when it is due. Cheap otherwise."""
        now = time.monotonic()
        if not self._enabled or now < self._due:
            return
        self._due = now + (TERMINAL_SECONDS if self._live else PLAIN_SECONDS)
        line = describe(self._status())
        if self._live:
            self._out.write("\r" + line.ljust(self._width))
            self._out.flush()
            self._width = len(line)
        else:
            self.say(line)

    def say(self, text: str) -> None:
        """A line that stays."""
        if not self._enabled:
            return
        self.end_line()
        self._out.write(f"atoll: {text}\n")
        self._out.flush()

    def end_line(self) -> None:
        if self._width:
            self._out.write("\n")
            self._width = 0


def describe(status: Dict[str, Any]) -> str:
    """The status in one line: only what is known."""
    parts = [str(status.get("phase") or "starting")]
    if status.get("version") is not None:
        parts.append(f"version {status['version']}")
    if status.get("step"):
        parts.append(f"step {status['step']}")
    loss = status.get("loss")
    if isinstance(loss, (int, float)) and math.isfinite(loss) and loss != 0:
        parts.append(f"loss {loss:.4f}")
    rate = status.get("tokens_per_second")
    if isinstance(rate, (int, float)) and rate > 0:
        parts.append(f"{rate:,.0f} tokens/s")
    if status.get("waiting_for"):
        parts.append(f"waiting for {status['waiting_for']}")
    return ", ".join(parts)
