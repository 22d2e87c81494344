"""The runs of this process that are open, so that a second join of the same objects is an error with a remedy."""
from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Tuple

from .errors import AlreadyExists

if TYPE_CHECKING:
    from .run import Run

_runs: "weakref.WeakSet[Run]" = weakref.WeakSet()  # one that nobody holds leaves it


class Uses:
    """What one run needs for itself alone: (name, object) pairs, and its state directory. Of a model, its tensors."""

    def __init__(self, objects: Iterable[Tuple[str, Any]], state_dir: Any):
        self._objects = list(objects)
        self._state_dir = os.path.realpath(os.fspath(state_dir)) if os.fspath(state_dir) else ""
        self._process = os.getpid()

    def shared_with(self, other: "Uses") -> str:
        """What both use, in words; empty: nothing. A forked child inherits objects, but no run."""
        if self._process != other._process:
            return ""
        own = {id(one): name for name, one in self._objects}
        names = [name for name, one in other._objects if id(one) in own]
        if self._state_dir and self._state_dir == other._state_dir:
            names.append(f"the state directory {self._state_dir}")
        return ", ".join(dict.fromkeys(names))


def check_unused(uses: Uses) -> None:
    """AlreadyExists when a run that is open uses the same. One whose worker has left gives its objects back."""
    for run in list(_runs):
        shared = run.uses.shared_with(uses)
        if not shared or run.closed:
            continue
        if run.end_reason is not None:
            run.abandon()
            continue
        raise AlreadyExists(f"a run of this process still uses {shared}: call run.close() or run.abandon() first. Use `with atoll.join(...) "
                                 "as run`, which leaves the run after an exception too")


def add(run: "Run") -> None:
    _runs.add(run)


def weakly(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, without keeping its object alive."""
    held = weakref.WeakMethod(method)

    def call(*arguments: Any) -> Any:
        found = held()
        return found(*arguments) if found is not None else None

    return call

