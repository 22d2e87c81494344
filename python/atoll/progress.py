"""The live status, without a line of the user's: one line that is updated on a terminal, plain lines elsewhere.

Standard error may be missing, closed, full, or a terminal that is gone. Nothing is shown then, and training goes on.
"""
from __future__ import annotations

import io
import math
import sys
import time
import warnings
from typing import Any, Callable, Dict, Optional, TextIO

TERMINAL_SECONDS = 0.25
PLAIN_SECONDS = 30.0


def on_terminal(out: Optional[TextIO] = None) -> bool:
    """Whether standard error, or `out`, is a terminal."""
    out = out or sys.stderr
    try:
        return hasattr(out, "isatty") and out.isatty()
    except (OSError, ValueError):
        return False


def warn(text: str, stacklevel: int = 1) -> None:
    """warnings.warn, whose own write to a closed standard error is an error."""
    try:
        warnings.warn(text, stacklevel=stacklevel + 1)
    except (OSError, ValueError):
        pass


class Progress:
    """Prints to standard error. `choice`: None decides by the terminal, False prints nothing, True prints plain lines at least."""

    def __init__(self, choice: Optional[bool], status: Callable[[], Dict[str, Any]], out: Optional[TextIO] = None):
        self._out = out or sys.stderr
        self._status = status
        self._enabled = choice is not False and self._out is not None
        self._live = self._enabled and on_terminal(self._out)
        self._due = 0.0
        self._width = 0

    def show(self) -> None:
        """Prints the status when it is due. Cheap otherwise."""
        now = time.monotonic()
        if not self._enabled or now < self._due:
            return
        self._due = now + (TERMINAL_SECONDS if self._live else PLAIN_SECONDS)
        line = describe(self._status())
        if self._live:
            self._write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self.say(line)

    def renew(self) -> None:
        """The next line is due in a second: what was shown before a step was due is stale."""
        self._due = min(self._due, time.monotonic() + 1)

    def say(self, text: str) -> None:
        """A line that stays."""
        self.end_line()
        self._write(f"atoll: {text}\n")

    def end_line(self) -> None:
        if self._width:
            self._write("\n")
            self._width = 0

    def _write(self, text: str) -> None:
        """Shows nothing more after a failure."""
        if not self._enabled:
            return
        try:
            write_through(self._out, text)
        except Exception:  # a stream of the user's may raise anything, and must not end training
            self._enabled = False


def write_through(out: Any, text: str) -> None:
    """Writes text without leaving any in the stream's buffer, where it would fail once more when the process exits."""
    out.flush()
    buffer = getattr(out, "buffer", None)
    if type(buffer) is io.BufferedWriter:
        buffer.raw.write(text.encode(out.encoding or "utf-8", out.errors or "replace"))
    else:
        out.write(text)
        out.flush()


def describe(status: Dict[str, Any]) -> str:
    """The status in one line: only what is known."""
    parts = [str(status.get("phase") or "starting")]
    if status.get("version"):  # 0: none yet
        parts.append(f"version {status['version']}")
    if status.get("step"):
        parts.append(f"step {status['step']}")
    loss = status.get("loss")
    if isinstance(loss, (int, float)) and math.isfinite(loss) and loss != 0:
        parts.append(f"loss {loss:.4f}")
    rate = status.get("tokens_per_second")
    if isinstance(rate, (int, float)) and rate > 0:
        parts.append(f"{rate:,.0f} tokens/s")
    waits = str(status.get("waiting_for") or "")
    if waits:
        parts.append(waits if waits.startswith(("waiting for ", "paused ")) else f"waiting for {waits}")
    return ", ".join(parts)
