"""The buffers of a torch.nn.Module that a run averages, such as the running statistics of a BatchNorm."""
from __future__ import annotations

from typing import Any, Iterator, Sequence, Tuple

import torch
from torch.nn.parameter import is_lazy

from .errors import FailedPrecondition

# BatchNorm, SyncBatchNorm and InstanceNorm of all dimensions.
_WITH_STATISTICS = torch.nn.modules.batchnorm._NormBase


class Buffer:
    """A buffer by its place: modules may replace the tensor at each step."""

    def __init__(self, name: str, owner: torch.nn.Module, attribute: str):
        self.name, self._owner, self._attribute = name, owner, attribute
        self.is_variance = attribute == "running_var" and isinstance(owner, _WITH_STATISTICS)

    @property
    def tensor(self) -> Any:
        found = self._owner._buffers.get(self._attribute)
        if found is None:
            raise FailedPrecondition(f"the buffer {self.name!r} is gone: a run's tensors are fixed. Keep it, or join a new run")
        return found


def averaged_buffers(module: torch.nn.Module, types: Sequence[torch.dtype]) -> Iterator[Tuple[str, torch.nn.Module, str]]:
    """(name, owner, attribute) of the buffers of these types that a state_dict has: a shared one once, under its first name.

    Counters and masks have other types. Buffers that are not persistent are computed from something else, and stay local. So do
    buffers without elements.
    """
    seen = set()
    for prefix, owner in module.named_modules():
        for attribute, buffer in owner._buffers.items():
            if buffer is None or buffer.dtype not in types or buffer.layout != torch.strided:
                continue
            if attribute in owner._non_persistent_buffers_set or id(buffer) in seen:
                continue
            if not is_lazy(buffer) and not buffer.numel():
                continue
            seen.add(id(buffer))
            yield (f"{prefix}.{attribute}" if prefix else attribute), owner, attribute
