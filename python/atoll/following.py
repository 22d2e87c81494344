"""A DataLoader that follows the run, in a loop that iterates over it by itself: over its part of shared data, or in passes of its own.

Such a loop, that of a trainer for example, holds an iterator that its loader gave it. So the loader gives it one that looks at the place
before each batch. When the run has moved the worker, it opens the loader again at the new place. Batches that the loader, its processes
or accelerate have drawn ahead are dropped: nobody has trained on them, and no position counts them.
"""
from __future__ import annotations

import functools
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, Optional, Tuple

from . import batch as batches
from .data_order import Place

if TYPE_CHECKING:
    from .data import DataPosition

# accelerate's loaders hide `__class__` behind a property.
_set_class = object.__dict__["__class__"].__set__


def follow(loader: Any, position: "DataPosition", batch_size: int) -> Callable[[], None]:
    """Makes every pass over the loader follow `position`. Returns what undoes it. The loader's sampler must read from `position`.

    The loop has the loader already, so it must stay the same object. Python looks for `__iter__` in its class, so it gets another class.
    """
    return _replace_passes(loader, lambda self, iterate: FollowedPass(self, iterate, position, batch_size))


def follow_passes(loader: Any, position: "DataPosition") -> Optional[Tuple["Original", Callable[[], None]]]:
    """Makes every pass over a DataLoader take its batches from `position`, which reads the loader as it was: (that loader, what undoes it).

    None: no DataLoader of torch.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(loader, torch.utils.data.DataLoader):
        return None
    original = Original(loader, functools.partial(_kind_of(loader).__iter__, loader))
    return original, _replace_passes(loader, lambda self, _: LoopPass(self, position))


def _replace_passes(loader: Any, make: Callable[[Any, Callable[[], Iterator[Any]]], Any]) -> Callable[[], None]:
    kind = _kind_of(loader)

    def passes(self: Any) -> Any:
        return make(self, functools.partial(kind.__iter__, self))

    _set_class(loader, type(kind.__name__, (kind,), {"__iter__": passes, "__module__": kind.__module__, "_followed": kind}))

    def undo() -> None:
        _set_class(loader, kind)

    return undo


def _kind_of(loader: Any) -> Any:
    return getattr(type(loader), "_followed", type(loader))  # its owner may copy the type of a followed loader


class Original:
    """A followed loader as its owner made it: its own passes, and everything else that it has."""

    def __init__(self, loader: Any, iterate: Callable[[], Iterator[Any]]):
        self.loader, self._iterate = loader, iterate

    def __iter__(self) -> Iterator[Any]:
        return self._iterate()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


class LoopPass:
    """One pass of a loop over a loader whose batches `position` reads, with as many batches as the loader's length says.

    A loader without a length ends it where its own pass ends.
    """

    def __init__(self, loader: Any, position: "DataPosition"):
        self._position, self._left, self._given = position, _length_of(loader), False

    def __iter__(self) -> "LoopPass":
        return self

    def __next__(self) -> Any:
        from .data import PassIsOver
        if self._left == 0:
            raise StopIteration
        try:
            batch = self._position.next(across=self._left is not None or not self._given)
        except PassIsOver:
            raise StopIteration from None
        self._given = True
        if self._left is not None:
            self._left -= 1
        return batch


class FollowedPass:
    """One pass of a loop over its loader, with as many batches as the loader's length says.

    It counts a batch when it hands it out, which is right before the loop trains on it.
    """

    def __init__(self, loader: Any, iterate: Callable[[], Iterator[Any]], position: "DataPosition", batch_size: int):
        self._loader, self._iterate, self._position, self._batch_size = loader, iterate, position, batch_size
        self._counter = batches.BatchCounter(loader)
        self._left = _length_of(loader)
        self._batches: Optional[Iterator[Any]] = None
        self._at: List[Place] = []  # where the next batch of _batches comes from

    def __iter__(self) -> "FollowedPass":
        return self

    def __next__(self) -> Any:
        if self._left == 0:
            self._close()
            raise StopIteration
        begin = time.monotonic()
        try:
            if self._batches is None or self._at != self._position.places():
                self._close()
                self._batches = self._iterate()
            batch = next(self._batches)
        finally:
            self._position.seconds += time.monotonic() - begin
        self._position.samples += self._batch_size or self._counter.count(batch)[0]
        self._at = self._position.places()
        if self._left is not None:
            self._left -= 1
        return batch

    def _close(self) -> None:
        opened, self._batches = self._batches, None
        close: Optional[Callable[[], None]] = getattr(opened, "close", None)
        if close is not None:
            close()
        if hasattr(self._loader, "gradient_state"):
            self._loader.end()  # accelerate keeps a list of loaders that are being read


def _length_of(loader: Any) -> Optional[int]:
    try:
        return len(loader)
    except TypeError:
        return None
