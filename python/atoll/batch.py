"""How many samples and tokens a batch has, without a line of the user's."""
from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional, Tuple

DEPTH = 4  # of nested batches that is searched


def count(batch: Any, context: int = 1) -> Tuple[int, int]:
    """(samples, tokens). Tokens are the elements of `input_ids`; without them, `context` for each sample. At least 1 each."""
    ids = _input_ids(batch)
    if ids is not None:
        elements = 1
        for length in ids.shape:
            elements *= int(length)
        return max(1, int(ids.shape[0]) if len(ids.shape) > 1 else 1), max(1, elements)
    for part in _parts(batch, DEPTH):
        shape = getattr(part, "shape", None)
        if shape is not None and len(shape) > 0:
            return max(1, int(shape[0])), max(1, int(shape[0])) * context
    if isinstance(batch, (list, tuple)) and batch:
        return len(batch), len(batch) * context
    return 1, context


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
