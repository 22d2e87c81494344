"""The order in which a run visits shared data (docs/reference/data_order.md), and samplers that follow it.

Every worker reads its own part of the samples, and a replacement continues where the last reader stopped.
"""
from __future__ import annotations

import itertools
import sys
import warnings
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .errors import InvalidArgument
from .progress import warn

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_ROUNDS = 6
_MIXTURE = 0x6D697874757265  # "mixture"
# Samplers that visit every sample once in a pass, of torch, torchdata, accelerate, Lightning and Transformers.
_ORDERS = {"SequentialSampler", "RandomSampler", "DistributedSampler", "LengthGroupedSampler", "DistributedLengthGroupedSampler"}


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


class MixtureOrder:
    """The order of the parts of a mixture: blocks in which each has exactly its weight."""

    def __init__(self, weights: List[int], seed: int):
        self._weights, self._block = weights, sum(weights)
        self._slots = SampleOrder(self._block, seed)

    def at(self, position: int) -> Tuple[int, int]:
        """(part, position in the part's own order) at this position of the run."""
        slot, block = self._slots.at(position), position // self._block
        for part, weight in enumerate(self._weights):
            if slot < weight:
                break
            slot -= weight
        return part, block * weight + slot


def part_seed(seed: int, part: int) -> int:
    """The seed of the order inside a part of a mixture."""
    return _mix((_mix(seed ^ _MIXTURE) + (part + 1) * _GOLDEN) & _MASK)


class PartitionSampler:
    """Indices of one part, from `start` on, without an end."""

    def __init__(self, samples: int, seed: int, partition: int, partitions: int, start: int):
        self._samples, self._seed = samples, seed
        self._partition, self._partitions, self.start = partition, partitions, start

    def __iter__(self) -> Iterator[int]:
        order, position = SampleOrder(self._samples, self._seed), self.start
        while True:
            yield order.at(position * self._partitions + self._partition)
            position += 1


class Place(NamedTuple):
    """A place in shared data: what PartitionSampler needs besides the number of samples."""

    seed: int
    partition: int
    partitions: int
    start: int


class RunSampler:
    """Takes the place of a DataLoader's sampler: indices from the place of that moment on, without an end.

    `places`: of each rank that reads from the loader, in the order in which the loader deals out its samples. Each gets `chunk` samples
    in turn. `length` is that of the sampler it replaces, so that a pass of a trainer stays as long as it was.
    """

    def __init__(self, samples: int, places: Callable[[], List[Place]], chunk: int, length: int):
        self._samples, self._places, self._chunk, self._length = samples, places, chunk, length

    def __iter__(self) -> Iterator[int]:
        parts = [iter(PartitionSampler(self._samples, *place)) for place in self._places()]
        while True:
            for part in parts:
                yield from itertools.islice(part, self._chunk)

    def __len__(self) -> int:
        return self._length


class Replaced(NamedTuple):
    """A sampler that was replaced."""

    undo: Callable[[], None]
    batch_size: int  # samples of each batch on this rank; 0: not known


def replace_sampler(loader: Any, places: Callable[[], List[Place]], rank: int) -> Optional[Replaced]:
    """Makes a torch DataLoader over a dataset with indices read from `places` (of all ranks). None: the loader is of another kind.

    A BatchSampler looks at its sampler when an iterator is made, so the loader itself stays as its owner made it.
    """
    inner, readers, split = _batch_sampler_of(loader)
    if getattr(loader, "in_order", True) is False:
        raise InvalidArgument("the loader has in_order=False, so its batches come in another order than their samples, and the place in the data "
                              "could not be kept: give a DataLoader with in_order=True")
    if not hasattr(inner, "sampler") or not has_indices(getattr(loader, "dataset", None)):
        return None
    size = _batch_size_of(inner)
    if readers > 1 and (readers != len(places()) or not size):
        return None
    size = size // readers if split else size
    before, samples = inner.sampler, len(loader.dataset)
    if samples == 0:
        raise InvalidArgument(f"the dataset of the loader, a {type(loader.dataset).__name__}, has no samples")
    _check_sampler(before, samples)
    length = len(before) if hasattr(before, "__len__") else samples
    if readers > 1:
        inner.sampler = RunSampler(samples, places, size, length)
    else:
        inner.sampler = RunSampler(samples, lambda: [places()[rank]], 1, length)

    def undo() -> None:
        inner.sampler = before

    return Replaced(undo, size)


def follows(loader: Any) -> bool:
    """Whether replace_sampler would take the loader, and the loader visits every sample."""
    inner = _batch_sampler_of(loader)[0]
    if getattr(loader, "in_order", True) is False or not hasattr(inner, "sampler"):
        return False
    if not has_indices(getattr(loader, "dataset", None)):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            _check_sampler(inner.sampler, len(loader.dataset))
    except (InvalidArgument, UserWarning):
        return False
    return True


def _check_sampler(sampler: Any, samples: int) -> None:
    """The run's order takes the place of one that visits every sample. Another one chooses samples, which the run would not do."""
    kinds = {kind.__name__ for kind in type(sampler).__mro__}
    chooses = bool(getattr(sampler, "replacement", False)) or getattr(sampler, "num_samples", samples) < samples
    if isinstance(sampler, RunSampler) or (kinds & _ORDERS and not ("RandomSampler" in kinds and chooses)):
        return
    what = (f"the loader draws its samples with a {type(sampler).__name__}, and the run divides its data: it would read all {samples} samples "
            "of the dataset, each as often as the others. For a part of a dataset give a loader over torch.utils.data.Subset(dataset, "
            "indices). For other weights set data.mode: local in the run's configuration")
    if kinds & {"RandomSampler", "SubsetRandomSampler", "WeightedRandomSampler"} or (hasattr(sampler, "__len__") and len(sampler) != samples):
        raise InvalidArgument(what)
    warn(what, stacklevel=6)


def uneven_reading(samples: int, partitions: int, configuration: Dict[str, Any]) -> str:
    """Why a run of this configuration reads the samples unevenly, with a remedy; empty if it does not, or if no number of parts helps.

    A worker reads a whole round from one part. If a part has fewer samples in a pass, the round is spread over several passes.
    """
    inner, planned = configuration.get("inner", {}), int(configuration.get("run", {}).get("workers", 1))
    read = int(inner.get("steps", 0)) * int(inner.get("batch", 0)) * int(inner.get("accumulation", 1))
    if read * partitions <= samples or partitions <= planned:
        return ""
    most = samples // read
    better = f"from {planned} (run.workers) to {most}" if most > planned else f"{planned}, as many as run.workers"
    return (f"a worker reads {read} samples in a round, all from one part of the data, and a part has {samples / partitions:.3g} in a pass "
            f"({samples} samples in {partitions} parts). So a short run reads some samples several times, and others never. A run keeps its "
            f"number of parts: begin a new run with data.partitions {better}, or with fewer inner.steps")


def length_fingerprint(loader: Any) -> Optional[str]:
    """What workers with equal shared data have in common at least, for the option data_fingerprint. None: the length is not known."""
    dataset: Any = getattr(loader, "dataset", None)
    if not has_indices(dataset):
        return None
    try:
        return f"{len(dataset)}-samples"
    except (TypeError, NotImplementedError):  # a wrapper around a dataset without a length
        return None


def with_length_fingerprint(options: Dict[str, Any], loader: Any) -> Dict[str, Any]:
    """Options of atoll.join for a callback, which knows the loader. A fingerprint of the user's counts, also None."""
    if {"data_fingerprint", "data-fingerprint"} & options.keys():
        return options
    return {**options, "data_fingerprint": length_fingerprint(loader)}


def _batch_sampler_of(loader: Any) -> Tuple[Any, int, bool]:
    """The batch sampler that draws the indices, how many ranks its batches are dealt out to, and whether each gets a part of every batch.

    accelerate wraps the batch sampler: each rank draws all batches and keeps its own.
    """
    found: Any = getattr(loader, "batch_sampler", None)
    readers, split = 1, False
    while hasattr(found, "batch_sampler"):
        readers *= int(getattr(found, "num_processes", 1))
        split = split or bool(getattr(found, "split_batches", False))
        found = found.batch_sampler
    if hasattr(loader, "slice_fn"):  # accelerate's DataLoaderDispatcher: rank 0 reads, and sends the others their batches
        readers *= int(getattr(getattr(loader, "state", None), "num_processes", 1))
        split = split or bool(getattr(loader, "split_batches", False))
    return found, readers, split


def _batch_size_of(batch_sampler: Any) -> int:
    kind = type(batch_sampler)
    if kind.__module__.partition(".")[0] in ("torch", "torchdata"):
        return int(getattr(batch_sampler, "batch_size", None) or 0)
    warnings.warn(f"the batch sampler is a {kind.__name__}. It must draw the samples of a batch right before it gives the batch: those "
                  "that it has drawn earlier are skipped when the run moves this worker to another part of the data", stacklevel=6)
    return 0


def has_indices(dataset: Any) -> bool:
    # torch's IterableDataset has __getitem__ of its base class, and may have __len__.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dataset, torch.utils.data.IterableDataset):
        return False
    return hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")


def _mix(z: int) -> int:
    """The output function of splitmix64."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
