"""Numbers that users give."""
from __future__ import annotations

import math
import operator
from typing import Any

from .errors import InvalidArgument

LARGEST_COUNT = 2 ** 63 - 1  # of samples or tokens
SHOWN = 100  # characters of a value in a message


def number(name: str, value: Any) -> float:
    """One number as a float: also a tensor or an array of one value."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError("text is no number")
        return float(value.detach() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as failure:  # RuntimeError: a tensor of several values
        shown = repr(value)
        shown = shown if len(shown) <= SHOWN else shown[:SHOWN] + "..."
        raise InvalidArgument(f"{name} is {shown}: give one number, or a tensor of one value. {type(failure).__name__}: {failure}") from None


def whole_number(name: str, value: Any) -> int:
    """A count as a whole number: also one of NumPy or PyTorch, and 3.0."""
    try:
        count = operator.index(value)
    except TypeError:
        try:
            number = math.nan if isinstance(value, (str, bytes)) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        count = int(number) if number.is_integer() else -1
    if not 0 <= count <= LARGEST_COUNT:
        raise InvalidArgument(f"{name} is {value!r}: give a whole number from 0 to {LARGEST_COUNT}")
    return count
