"""How many samples and tokens a batch has, without a line of the user's."""
from __future__ import annotations

import sys
from typing import Any, Callable, Iterator, List, Mapping, Optional, Tuple

from ._counts import whole_number
from .errors import InvalidArgument
from .progress import warn

DEPTH = 4  # of nested batches that is searched
MOST_FIELDS = 8  # a longer list of equal kinds has samples, and a shorter one may have inputs, masks and targets


def count(batch: Any, context: int = 1) -> Tuple[int, int]:
    """(samples, tokens) of a batch whose loader is not known."""
    return BatchCounter().count(batch, context)


class BatchCounter:
    """Counts the batches of one loader.

    The samples are the first dimension of the first tensor, or the length of a list of samples. A batch does not always say which: three
    tensors of 3 x 8 x 8 are three images, or inputs, masks and targets of three samples. The loader's batch size says it. `samples`: the
    caller's function that counts.
    """

    def __init__(self, loader: Any = None, samples: Optional[Callable[[Any], Any]] = None):
        self._samples = samples
        self._size = 0 if _stacks(loader) else _batch_size(loader)
        self._stacked = _stacks(loader)
        self._place: Optional[Tuple[bool, int]] = None  # where full batches have their size: (in a list, which)
        self._both: Optional[Tuple[int, int]] = None  # both a list and a tensor had it so far
        self._said = False

    def count(self, batch: Any, context: int = 1) -> Tuple[int, int]:
        """(samples, tokens). Tokens are the elements of `input_ids`; without them, `context` for each sample. At least 1 each."""
        ids = _input_ids(batch)
        samples = 0 if self._samples is None else self._told(batch)
        if ids is not None:
            elements = 1
            for length in ids.shape:
                elements *= int(length)
            return samples or max(1, int(ids.shape[0]) if len(ids.shape) > 1 else 1), max(1, elements)
        samples = max(1, samples or self._counted(batch))
        return samples, samples * context

    def _told(self, batch: Any) -> int:
        assert self._samples is not None
        told = whole_number("samples", self._samples(batch))
        if not told:
            raise InvalidArgument(f"the function samples counted 0 samples in a batch, a {type(batch).__name__}: a batch of a step has at least one. "
                                  "Give run.steps(loader) no empty batches, or a function that counts their samples")
        return told

    def _counted(self, batch: Any) -> int:
        lists = [] if self._stacked else _lists(batch)
        lengths = [len(one) for one in lists]
        rows = [int(part.shape[0]) for part in _parts(batch, DEPTH) if len(part.shape) > 0]
        if self._place is None and self._size:
            self._find_place(lengths, rows)
        if self._place is not None:  # the last batch of a pass may be smaller
            in_list, index = self._place
            found = lengths if in_list else rows
            if index < len(found):
                return found[index]
        if self._size in lengths and self._size in rows:
            return self._size
        for one in lists:
            if len(one) > MOST_FIELDS and _alike(one):
                return len(one)
        if rows:
            self._warn_of_rows(batch, rows)
            return rows[0]
        return len(batch) if isinstance(batch, (list, tuple)) else 1

    def _find_place(self, lengths: List[int], rows: List[int]) -> None:
        listed, stacked = self._size in lengths, self._size in rows
        if listed and stacked:  # such as four tensors of four rows: the smaller of both in a later batch has the samples
            self._both = (lengths.index(self._size), rows.index(self._size))
        elif self._both is not None and (listed or stacked):
            self._place = (stacked, self._both[not stacked])
        elif listed or stacked:
            self._place = (listed, (lengths if listed else rows).index(self._size))

    def _warn_of_rows(self, batch: Any, rows: List[int]) -> None:
        if self._said or self._samples or not isinstance(batch, (list, tuple)) or len(set(rows)) == 1:
            return
        if all(len(getattr(part, "shape", ())) > 0 for part in batch):
            self._said = True
            warn(f"a batch is a {type(batch).__name__} of {len(batch)} tensors with the first dimensions {', '.join(map(str, rows[:8]))}, and is "
                 f"counted as {rows[0]} samples. If that is wrong, give run.steps(loader, samples=len), or another function that counts the "
                 "samples of a batch", stacklevel=6)


def _stacks(loader: Any) -> bool:
    """Whether the batches are made by PyTorch's own function, which stacks the samples."""
    torch = sys.modules.get("torch")
    own = getattr(torch.utils.data, "default_collate", None) if torch is not None else None
    return own is not None and getattr(loader, "collate_fn", None) is own


def _batch_size(loader: Any) -> int:
    if not hasattr(loader, "collate_fn"):
        return 0
    size = getattr(loader, "batch_size", None) or getattr(getattr(loader, "batch_sampler", None), "batch_size", None)
    return size if isinstance(size, int) else 0


def _input_ids(batch: Any) -> Optional[Any]:
    if isinstance(batch, Mapping):
        found = batch.get("input_ids")
    else:
        found = getattr(batch, "input_ids", None)
    return found if hasattr(found, "shape") else None


def _parts(batch: Any, depth: int) -> Iterator[Any]:
    if hasattr(batch, "shape"):
        yield batch
    elif depth and isinstance(batch, Mapping):
        for value in batch.values():
            yield from _parts(value, depth - 1)
    elif depth and isinstance(batch, (list, tuple)):
        for value in batch:
            yield from _parts(value, depth - 1)


def _lists(batch: Any) -> List[Any]:
    """The list, the list that is its first item, and so on; of a dict, its first value's."""
    found: List[Any] = []
    for _ in range(DEPTH):
        if isinstance(batch, Mapping):
            batch = next(iter(batch.values()), None)
        elif isinstance(batch, (list, tuple)) and batch:
            found.append(batch)
            batch = batch[0]
    return found


def _alike(items: Any) -> bool:
    return len({(type(item), len(getattr(item, "shape", ())), getattr(item, "dtype", None)) for item in items}) == 1
