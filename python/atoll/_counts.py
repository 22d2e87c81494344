"""Counts that users give."""
from __future__ import annotations

import math
import operator
from typing import Any

from .errors import InvalidArgument

LARGEST_COUNT = 2 ** 63 - 1  # of samples or tokens


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
