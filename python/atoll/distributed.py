"""An island: the ranks of torch.distributed that train one model together and are one worker of the run.

Rank 0 holds the engine. Every rank does the same things in the same order: rank 0 shares each event, so that the
collectives of all ranks match.
"""
from __future__ import annotations

import atexit
import ctypes
import pickle
import sys
from typing import Any, List, Optional

from .errors import InvalidArgument

# The last collectives. A thread of gloo lets go of a collective a moment after it is done. Where that is the last reference, the thread
# needs the interpreter, and PyTorch 2.13 aborts the process if the interpreter ends in this moment. So the last ones are never freed.
_last_works: List[Any] = []


@atexit.register
def _keep_last_works() -> None:
    for work in _last_works:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(work))


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
        import torch
        told = torch.frombuffer(bytearray(pickle.dumps(value)), dtype=torch.uint8) if self.rank == 0 else None
        length = torch.tensor([0 if told is None else told.numel()], dtype=torch.int64, device=self._device(None))
        self._broadcast(length)
        text = torch.empty(int(length), dtype=torch.uint8, device=self._device(None)) if told is None else told.to(self._device(None))
        self._broadcast(text)
        # Only a rank of the same program sends this: torch.distributed's own broadcast of objects reads it in the same way.
        return value if self.rank == 0 else pickle.loads(text.cpu().numpy().tobytes())

    def gather(self, value: Any) -> Optional[List[Any]]:
        found = [None] * self.size
        self._dist.all_gather_object(found, value, group=self._group)
        return found if self.rank == 0 else None

    def sum(self, numbers: List[float]) -> List[float]:
        import torch
        total = torch.tensor(numbers, dtype=torch.float64, device=self._device(None))
        self._finish(self._dist.all_reduce(total, group=self._group, async_op=True))
        return total.tolist()

    def spread(self, tensor: Any, device: Any) -> Any:
        # A copy on rank 0 as well: NCCL needs it on the device, and the engine's memory is not the broadcast's.
        copy = tensor.to(device=self._device(device), copy=True)
        self._broadcast(copy)
        return copy

    def _broadcast(self, tensor: Any) -> None:
        self._finish(self._dist.broadcast(tensor, src=self._source, group=self._group, async_op=True))

    def _finish(self, work: Any) -> None:
        work.wait()
        _last_works.append(work)
        del _last_works[:-2]  # what share() uses

    def _device(self, device: Any) -> Any:
        if "nccl" not in self._backend:
            return "cpu"
        import torch
        return device if device is not None else torch.device("cuda", torch.cuda.current_device())


def find_island(choice: Any = "auto") -> Island:
    """`choice`: "auto" (all ranks where torch.distributed is initialised), None or False (this process alone), or a process group."""
    if choice is None or choice is False:
        return Island()
    torch: Any = sys.modules.get("torch")
    available = torch is not None and torch.distributed.is_available()
    ready = available and torch.distributed.is_initialized()
    if choice is not True and not (isinstance(choice, str) and choice == "auto"):
        if not available or not isinstance(choice, torch.distributed.ProcessGroup):
            raise InvalidArgument(f"island is {choice!r}: use 'auto', False, or a process group of torch.distributed that has this rank, such as "
                                  "torch.distributed.new_group()")
        if not ready:
            raise InvalidArgument("island is a process group, but torch.distributed has ended: call init_process_group, then join with its group")
        if torch.distributed.get_rank(choice) < 0:
            raise InvalidArgument("island is a process group without this rank: join on its ranks only, or give this rank a group of its own")
        return TorchIsland(choice)
    if ready and torch.distributed.get_world_size() > 1:
        return TorchIsland()
    if choice is True:
        raise InvalidArgument("island=True, but torch.distributed has fewer than two ranks: call init_process_group first")
    return Island()
