"""Where the passes over a loader began, on disk before their first batch.

A state is written while its round is pushed. A worker that is killed in between finds the state of the round before, and a push that
counts. If a pass began in that round, its order was drawn from generators whose states are lost with the process. The journal has them.
"""
from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Union

from . import state
from .errors import InvalidArgument
from .progress import warn


class Pass(NamedTuple):
    """Where a pass began, and the random state that its order was drawn from."""

    number: int
    start: int
    random: Dict[str, Any]
    loader: Any = None  # state of a loader with state_dict, before its first batch
    warm: bool = False  # the loader had worker processes from a pass before


class PassJournal:
    """The newest passes of one rank, in a file of the state directory. No file for a folder of None."""

    def __init__(self, folder: Union[str, "os.PathLike[str]", None] = None, rank: int = 0):
        self._path = os.path.join(folder, f"passes-{rank}") if folder is not None else None
        self._warned = False

    def read(self, partition: int, partitions: int) -> List[Pass]:
        """The passes over this part. A file that is missing or damaged has none."""
        if self._path is None:
            return []
        try:
            with open(self._path, "rb") as file:
                kept = state.unpack(file.read())
            if (kept["partition"], kept["partitions"]) != (partition, partitions):
                return []
            return [Pass(*one) for one in kept["passes"]]
        except Exception:  # of a damaged file; the state has the pass of the round before
            return []

    def write(self, partition: int, partitions: int, passes: List[Pass]) -> None:
        """Survives the end of the process. It is not waited for the disk: a pass may be short."""
        if self._path is None:
            return
        kept = [[one.number, one.start, one.random, _packable(one.loader), one.warm] for one in passes]
        partial = f"{self._path}.partial"
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            with open(partial, "wb") as file:
                file.write(state.pack({"partition": partition, "partitions": partitions, "passes": kept}))
            os.replace(partial, self._path)
            self._warned = False
        except OSError as failure:
            if not self._warned:
                warn(f"the beginning of a pass over the data cannot be kept in {self._path}: {failure}. If the worker is killed in this pass, it "
                     "may read samples twice and leave others out. Make room on the disk", stacklevel=4)
            self._warned = True


def _packable(loader: Any) -> Any:
    """A loader's state, which may be of any type; None where it cannot be kept."""
    try:
        state.check(loader)
    except InvalidArgument:
        return None
    return loader
