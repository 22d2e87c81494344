"""Whether the ranks of an island train alike: compared when they join, and when their parameters are read."""
from __future__ import annotations

import json
import zlib
from typing import Any, Callable, Dict, List, Optional, TypeVar

from .distributed import Island
from .errors import AtollError, FailedPrecondition, InvalidArgument
from .inner import Inner
from .model import Model

SHOWN = 120  # characters of a value in a message
LEAST_DIFFERENCE = 1e-3  # of the squared norms of gradients, relative; averaged ones differ by rounding only

Made = TypeVar("Made")


def together(island: Island, make: Callable[[], Made]) -> Made:
    """What make() returns. When it fails on one rank, all ranks raise: the others would wait for that one."""
    if island.size == 1:
        return make()
    made: List[Made] = []
    failure: Optional[AtollError] = None
    try:
        made.append(make())
    except AtollError as error:
        failure = error
    texts = _of_all(island, str(failure) if failure else "")
    if failure is not None:
        raise failure
    for rank, text in enumerate(texts):
        if text:
            raise FailedPrecondition(f"rank {rank} of this worker cannot join: {text}")
    return made[0]


def check_alike(island: Island, model: Model, inner: Inner, arguments: Dict[str, Any]) -> None:
    """InvalidArgument on all ranks when one has joined with something else than rank 0."""
    if island.size == 1:
        return
    own: Dict[str, Any] = {f"argument {name}": value for name, value in arguments.items()}
    own["hash of the frozen parameters"] = model.fingerprint
    for spec, kind in zip(model.specs, model.kinds()):
        own[f"tensor {spec.name!r}"] = f"{kind} {list(spec.shape)}{', averaged' if spec.averaged else ''}"
    for place, settings in enumerate(inner.settings()):
        own.update({f"{name} of the optimizer{f' {place}' if place else ''}": value for name, value in settings.items()})
    own["parameters of the optimizer"] = inner.kind
    for rank, found in enumerate(_of_all(island, own)):
        if rank == 0:
            first = found
            continue
        for name in [*first, *(name for name in found if name not in first)]:
            if first.get(name) != found.get(name):
                raise InvalidArgument(f"the ranks of this worker differ. Rank 0 has {_shown(first, name)}, and rank {rank} has "
                                      f"{_shown(found, name)}. Give all ranks the same model, optimizer and arguments, or use island=False for "
                                      "one worker per process")


class Agreement:
    """Notes steps whose gradients were not averaged over the ranks, and compares the parameters when they are read."""

    def __init__(self, island: Island):
        self._island = island
        self._differ = False

    def see(self, own: float, total: float) -> None:
        """The squared norms of the gradients of a step: of this rank, and the sum of those of all ranks."""
        expected = own * self._island.size
        self._differ = self._differ or abs(total - expected) > LEAST_DIFFERENCE * max(total, expected)

    def check(self, model: Model) -> None:
        """FailedPrecondition on all ranks when their parameters differ because each rank has used its own gradients."""
        if self._island.size == 1:
            return
        differ = self._island.sum([float(self._differ)])[0]
        self._differ = False
        if not differ:
            return
        own = zlib.crc32(json.dumps(model.checksums()).encode())
        sums = self._island.sum([float(own) if rank == self._island.rank else 0.0 for rank in range(self._island.size)])
        others = [rank for rank, value in enumerate(sums) if value != sums[0]]
        if others:
            raise FailedPrecondition(f"the parameters of rank {others[0]} differ from those of rank 0, because the ranks do not average their "
                                     "gradients: only rank 0's training would count. Give atoll.join the model in DistributedDataParallel or "
                                     "fully_shard and call that one, or use island=False for one worker per process")


def _of_all(island: Island, value: Any) -> List[Any]:
    found: List[Any] = island.share(island.gather(value))
    return found


def _shown(found: Dict[str, Any], name: str) -> str:
    value = str(found.get(name, "none"))
    return f"{name}: {value if len(value) <= SHOWN else value[:SHOWN] + '...'}"


def plain(value: Any) -> str:
    """A setting of an optimizer in words that are equal on all ranks. Of other objects, only the class."""
    if isinstance(value, (bool, int, float, str)) or value is None:
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"({', '.join(plain(item) for item in value)})"
    if hasattr(value, "tolist") and getattr(value, "ndim", 1) == 0:
        return repr(value.tolist())
    return type(value).__name__
