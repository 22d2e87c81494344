"""An island: the ranks of torch.distributed that train one model together and are one worker of the run.

Rank 0 holds the engine. Every rank does the same things in the same order: rank 0 shares each event, so that the
collectives of all ranks match.
"""
from __future__ import annotations

import sys
from typing import Any, List, Optional

from .errors import InvalidArgument


class Island:
    """One process: nothing to share."""

    rank = 0
    size = 1

    def share(self, value: Any) -> Any:
        """Rank 0's value, on every rank."""
        return value

    def gather(self, value: Any) -> Optional[List[Any]]:
        """The values of all ranks at rank 0, None elsewhere."""
        return [value]

    def sum(self, numbers: List[float]) -> List[float]:
        """The sums over all ranks, on every rank."""
        return numbers

    def spread(self, tensor: Any, device: Any) -> Any:
        """Rank 0's tensor, on every rank."""
        return tensor


class TorchIsland(Island):
    """The ranks of a torch.distributed process group."""

    def __init__(self, group: Any = None):
        import torch.distributed
        self._dist, self._group = torch.distributed, group
        self.rank, self.size = torch.distributed.get_rank(group), torch.distributed.get_world_size(group)
        self._source = torch.distributed.distributed_c10d.get_global_rank(group, 0) if group is not None else 0
        self._backend = str(torch.distributed.get_backend(group))

    def share(self, value: Any) -> Any:
        box = [value if self.rank == 0 else None]
        self._dist.broadcast_object_list(box, src=self._source, group=self._group)
        return box[0]

    def gather(self, value: Any) -> Optional[List[Any]]:
        found = [None] * self.size
        self._dist.all_gather_object(found, value, group=self._group)
        return found if self.rank == 0 else None

    def sum(self, numbers: List[float]) -> List[float]:
        import torch
        total = torch.tensor(numbers, dtype=torch.float64, device=self._device(None))
        self._dist.all_reduce(total, group=self._group)
        return total.tolist()

    def spread(self, tensor: Any, device: Any) -> Any:
        # A copy on rank 0 as well: NCCL needs it on the device, and the engine's memory is not the broadcast's.
        copy = tensor.to(device=self._device(device), copy=True)
        self._dist.broadcast(copy, src=self._source, group=self._group)
        return copy

    def _device(self, device: Any) -> Any:
        if "nccl" not in self._backend:
            return "cpu"
        import torch
        return device if device is not None else torch.device("cuda", torch.cuda.current_device())


def find_island(choice: Any = "auto") -> Island:
    """`choice`: "auto" (all ranks where torch.distributed is initialised), None or False (this process alone), or a process group."""
    if choice is None or choice is False:
        return Island()
    if choice != "auto" and choice is not True:
        return TorchIsland(choice)
    torch: Any = sys.modules.get("torch")
    ready = torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized()
    if ready and torch.distributed.get_world_size() > 1:
        return TorchIsland()
    if choice is True:
        raise InvalidArgument("island=True, but torch.distributed has fewer than two ranks: call init_process_group first")
    return Island()
