"""The order in which a run visits shared data (docs/reference/data_order.md), and a sampler that follows it.

Every worker reads its own part of the samples, and a replacement continues where the last reader stopped.
"""
from __future__ import annotations

from typing import Any, Callable, Iterator, List, Optional

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_ROUNDS = 6


class SampleOrder:
    """Pass after pass over `samples` samples, each pass in an order of its own. The bits are those of every other worker."""

    def __init__(self, samples: int, seed: int):
        self.samples, self._seed = samples, seed
        self._half = max(1, ((samples - 1).bit_length() + 1) // 2)
        self._pass: Optional[int] = None
        self._keys: List[int] = []

    def at(self, position: int) -> int:
        """The sample at this position of the run."""
        run_pass, value = divmod(position, self.samples)
        if run_pass != self._pass:
            key = _mix((self._seed + (run_pass + 1) * _GOLDEN) & _MASK)
            self._pass, self._keys = run_pass, [_mix((key + (r + 1) * _GOLDEN) & _MASK) for r in range(_ROUNDS)]
        half, mask = self._half, (1 << self._half) - 1
        while True:
            left, right = value >> half, value & mask
            for key in self._keys:
                left, right = right, left ^ (_mix(right ^ key) & mask)
            value = left << half | right
            if value < self.samples:
                return value


class PartitionSampler:
    """Indices of one part, from `start` on, without an end. Takes the place of a DataLoader's sampler."""

    def __init__(self, samples: int, seed: int, partition: int, partitions: int, start: int):
        self._samples, self._seed = samples, seed
        self._partition, self._partitions, self.start = partition, partitions, start

    def __iter__(self) -> Iterator[int]:
        order, position = SampleOrder(self._samples, self._seed), self.start
        while True:
            yield order.at(position * self._partitions + self._partition)
            position += 1

    def __len__(self) -> int:
        # Of one pass, for progress bars and the epochs of trainers.
        return max(1, self._samples // self._partitions)


def replace_sampler(loader: Any, sampler: PartitionSampler) -> Optional[Callable[[], None]]:
    """Makes a torch DataLoader follow the sampler. Returns what undoes it; None when the loader is of another kind.

    A BatchSampler looks at its sampler when an iterator is made, so the loader itself stays as its owner made it.
    """
    batch_sampler = getattr(loader, "batch_sampler", None)
    if batch_sampler is None or not hasattr(batch_sampler, "sampler") or not hasattr(getattr(loader, "dataset", None), "__getitem__"):
        return None
    before = batch_sampler.sampler
    batch_sampler.sampler = sampler

    def undo() -> None:
        batch_sampler.sampler = before

    return undo


def _mix(z: int) -> int:
    """The output function of splitmix64."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
