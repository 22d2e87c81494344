"""A torch.nn.Module as the tensors of a run: which parameters and buffers, under which names, and how values go in and out."""
from __future__ import annotations

import hashlib
from typing import Any, Dict, List, Optional, Tuple

import torch

from .client import TensorSpec
from .distributed import Island
from .errors import InvalidArgument, Unimplemented
from .model import Model, check_specs, shape_changed
from .progress import warn
from .torch_buffers import Buffer, averaged_buffers

EXACT = (torch.float32, torch.float64)
REDUCED = (torch.bfloat16, torch.float16)
WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")  # attributes that only wrappers have
PARALLEL = (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)


def canonical_name(root: torch.nn.Module, name: str) -> str:
    """The name without what DistributedDataParallel, torch.compile and checkpoint wrappers put into it.

    `name`: of a parameter or buffer of `root`. A module of the user's that is called `module` keeps its name.
    """
    kept: List[str] = []
    owner: Any = root
    for part in name.split("."):
        if part not in WRAPPERS and not (part == "module" and isinstance(owner, PARALLEL)):
            kept.append(part)
        owner = getattr(owner, part, None)
    return ".".join(kept)


def innermost(module: torch.nn.Module) -> torch.nn.Module:
    """The module under DistributedDataParallel, DataParallel and torch.compile."""
    while True:
        inner = getattr(module, "_orig_mod", None)
        if inner is None and isinstance(module, PARALLEL):
            inner = module.module
        if inner is None:
            return module
        module = inner


class TorchModel(Model):
    """The parameters with requires_grad, each once; behind them, if asked for, the float buffers. float32 goes over the wire,
    whatever their type is.

    Parameters in bfloat16 or float16 get a float32 master copy, which is what the run published. Their local progress, the
    difference to the rounded master, is added to it when they are read. So rounding never looks like progress.
    """

    def __init__(self, module: torch.nn.Module, island: Island, base_fingerprint: Optional[str] = None, average_buffers: bool = False):
        self._module, self._island = module, island
        trained, frozen = _parameters(module)
        for name, parameter in [*trained, *frozen]:
            _check_memory(name, parameter)
        for name, parameter in trained:
            _check_type(name, parameter)
            _check_distinct(name, parameter)
        _check_apart(trained)
        self._parameters = [parameter for _, parameter in trained]
        tables = _lookup_tables(module)
        self.specs = [TensorSpec(name, tuple(parameter.shape), id(parameter) in tables) for name, parameter in trained]
        self._buffers = self._take_buffers(module) if average_buffers else []
        check_specs(self.specs)
        self._masters: Dict[int, torch.Tensor] = {}
        self._warn_of_reduced_types()
        device = self._parameters[0].device
        self.device = str(device)
        if device.type == "cuda":
            self.device_name = torch.cuda.get_device_name(device)
        self.fingerprint = _fingerprint(frozen) if base_fingerprint is None and frozen else base_fingerprint or ""
        # All workers have agreed on their values, unless the caller answers for them.
        self._frozen = [(name, parameter, _changes_of(parameter)) for name, parameter in frozen] if base_fingerprint is None else []

    def _take_buffers(self, module: torch.nn.Module) -> List[Buffer]:
        buffers = [Buffer(canonical_name(module, name), owner, attribute) for name, owner, attribute in averaged_buffers(module, EXACT + REDUCED)]
        for buffer in buffers:
            _check_memory(buffer.name, buffer.tensor, "buffer")
            _check_distinct(buffer.name, buffer.tensor, "buffer")
            self.specs.append(TensorSpec(buffer.name, tuple(buffer.tensor.shape), averaged=True))
        return buffers

    def _tensor(self, index: int) -> Any:
        """Of specs[index], as it is now."""
        spec, count = self.specs[index], len(self._parameters)
        tensor = self._parameters[index] if index < count else self._buffers[index - count].tensor
        if tuple(tensor.shape) != spec.shape:
            raise shape_changed(spec, tensor.shape)
        return tensor

    @property
    def parameters(self) -> List[torch.nn.Parameter]:
        return self._parameters

    def kinds(self) -> List[str]:
        return [str(self._tensor(index).dtype) for index in range(len(self.specs))]

    @torch.no_grad()
    def checksums(self) -> List[int]:
        sums = [_bit_sum(self._tensor(index)) for index in range(len(self.specs))]
        found: List[int] = torch.stack([value.to(sums[0].device) for value in sums]).tolist()
        return found

    def held(self) -> List[Any]:
        return list(self._parameters)

    def evaluating(self) -> torch.nn.Module:
        return innermost(self._module)

    def check_unchanged(self) -> None:
        now = dict(_parameters(self._module)[0])
        for spec, parameter in zip(self.specs, self._parameters):
            found = now.pop(spec.name, None)
            if found is None:
                raise InvalidArgument(f"the parameter {spec.name!r} is gone, or no longer has requires_grad: a run's tensors are fixed")
            if tuple(found.shape) != spec.shape:
                raise shape_changed(spec, found.shape)
            if found is not parameter:
                raise InvalidArgument(f"the parameter {spec.name!r} was replaced by another tensor after atoll.join: change it in place")
        for index in range(len(self._parameters), len(self.specs)):
            self._tensor(index)
        self._warn_of_changed_base()
        for name in now:
            raise InvalidArgument(f"the parameter {name!r} is new or newly trained: a run's tensors are fixed. Freeze it, or start a "
                                  "new run")

    def _warn_of_changed_base(self) -> None:
        changed = [name for name, parameter, changes in self._frozen if _changes_of(parameter) != changes]
        if not changed:
            return
        self._frozen = []  # once
        warn(f"the frozen parameter {changed[0]!r} was changed after atoll.join: the other workers do not have the change, and this worker "
             "is rejected when it joins again. Train the parameter, make it a buffer, or pass base_fingerprint=\"\" to answer for it yourself",
             stacklevel=3)

    @torch.no_grad()
    def read(self, index: int, out: Optional[memoryview]) -> None:
        full = _gathered(self._tensor(index))
        if out is None:
            return
        target = torch.frombuffer(out, dtype=torch.float32).view(full.shape)
        master = self._masters.get(index)
        if master is None:
            target.copy_(full)
        else:
            target.copy_(master + (full.float() - master.to(full.dtype).float()))

    @torch.no_grad()
    def write(self, index: int, values: Optional[memoryview]) -> None:
        parameter, shape = self._tensor(index), self.specs[index].shape
        # The default type and device are the user's, and the other ranks get what rank 0 sends.
        full = torch.empty(shape, dtype=torch.float32, device="cpu") if values is None else torch.frombuffer(values, dtype=torch.float32).view(shape)
        full = self._island.spread(full, parameter.device)
        if index >= len(self._parameters) and self._buffers[index - len(self._parameters)].is_variance:
            full = full.clamp(min=0)  # a codec may leave it below zero, whose root is not a number
        if parameter.dtype in REDUCED:
            self._keep_master(index, full, parameter.device)
        _scattered(parameter, full)

    def _keep_master(self, index: int, full: torch.Tensor, device: torch.device) -> None:
        if self._island.rank != 0:
            return  # rank 0 alone is read
        master = self._masters.get(index)
        if master is None:
            self._masters[index] = full.to(device=device, dtype=torch.float32, copy=True)
        else:
            master.copy_(full)

    def _warn_of_reduced_types(self) -> None:
        reduced = [spec.name for spec, p in zip(self.specs, self._parameters) if p.dtype in REDUCED]
        if reduced and self._island.rank == 0:
            warn(f"{len(reduced)} parameters, such as {reduced[0]!r}, are {self._parameters[0].dtype}: the optimizer loses updates that "
                 "are too small for that type. Prefer float32 parameters with torch.autocast. Atoll exchanges float32, and keeps a "
                 "float32 copy of these parameters", stacklevel=5)


def _parameters(module: torch.nn.Module) -> Tuple[List[Tuple[str, Any]], List[Tuple[str, Any]]]:
    """(trained, frozen), tied weights once, under the first of their names."""
    trained: List[Tuple[str, Any]] = []
    frozen: List[Tuple[str, Any]] = []
    for name, parameter in module.named_parameters():
        (trained if parameter.requires_grad else frozen).append((canonical_name(module, name), parameter))
    return trained, frozen


def _lookup_tables(module: torch.nn.Module) -> set:
    """Identities of the weights of embeddings, which some merges average plainly."""
    return {id(part.weight) for part in module.modules() if isinstance(part, (torch.nn.Embedding, torch.nn.EmbeddingBag))}


def _check_memory(name: str, parameter: Any, kind: str = "parameter") -> None:
    if parameter.is_meta:
        raise InvalidArgument(f"the {kind} {name!r} is on the device 'meta', which has no memory: initialise the model first, for "
                              "example with model.to_empty(device='cpu') and your own initialisation")
    if torch.nn.parameter.is_lazy(parameter):
        raise InvalidArgument(f"the {kind} {name!r} has no shape yet (a lazy module): run the model once before atoll.join")


def _check_distinct(name: str, tensor: Any, kind: str = "parameter") -> None:
    local = getattr(tensor, "to_local", lambda: tensor)()
    if local.layout == torch.strided and any(size > 1 and stride == 0 for size, stride in zip(local.shape, local.stride())):
        raise InvalidArgument(f"the {kind} {name!r} of shape {list(local.shape)} is an expanded tensor: several of its values share one place in "
                              "memory, and cannot be written one by one. Make it from tensor.clone()")


def _check_apart(trained: List[Tuple[str, Any]]) -> None:
    """Two parameters that share memory are no tied weights: each would be exchanged, and one write would undo the other."""
    places = []
    for name, parameter in trained:
        local = getattr(parameter, "to_local", lambda: parameter)()
        if local.numel() and local.layout == torch.strided and local.is_contiguous():
            begin = local.data_ptr()
            places.append((str(local.device), begin, begin + local.numel() * local.element_size(), name))
    places.sort()
    for before, after in zip(places, places[1:]):
        if before[0] == after[0] and before[1] and after[1] < before[2]:
            raise InvalidArgument(f"the parameters {before[3]!r} and {after[3]!r} share memory: use one torch.nn.Parameter in both places, "
                                  "or give one of them a clone()")


def _changes_of(parameter: Any) -> int:
    """How often the tensor was written in place, as autograd counts it; not if it is an inference tensor."""
    return 0 if parameter.is_inference() else int(parameter._version)


def _check_type(name: str, parameter: Any) -> None:
    if parameter.layout != torch.strided:
        raise InvalidArgument(f"the parameter {name!r} is sparse ({parameter.layout}): only dense parameters can be exchanged")
    if parameter.dtype not in EXACT + REDUCED:
        raise InvalidArgument(f"the parameter {name!r} has the unknown type {parameter.dtype}: only float32, float64, bfloat16 and float16 "
                              "can be exchanged. Freeze it (requires_grad=False) or convert it")
    if type(parameter).__name__ == "FlatParameter":
        raise Unimplemented(f"the parameter {name!r} is flattened by FullyShardedDataParallel: use torch.distributed.fsdp.fully_shard, or "
                            "use_orig_params and one process")


def _bit_sum(tensor: Any) -> torch.Tensor:
    """The sum of the values' bits as whole numbers: exact, in any order, without a copy, and for values that are not finite."""
    local = getattr(tensor, "to_local", lambda: tensor)().detach()
    return local.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[local.element_size()]).sum(dtype=torch.int64)


def _gathered(parameter: Any) -> torch.Tensor:
    """The whole tensor; collective for a DTensor."""
    full = getattr(parameter, "full_tensor", None)
    return full() if full is not None else parameter.detach()


def _scattered(parameter: Any, full: torch.Tensor) -> None:
    if hasattr(parameter, "full_tensor"):
        from torch.distributed.tensor import distribute_tensor
        full = distribute_tensor(full.to(device=parameter.device, dtype=parameter.dtype), parameter.device_mesh, parameter.placements)
    parameter.copy_(full)


@torch.no_grad()
def _fingerprint(frozen: List[Tuple[str, Any]]) -> str:
    """SHA-256 over the names, types, shapes and bytes of the frozen parameters, in the order of their names."""
    digest = hashlib.sha256()
    for name, parameter in sorted(frozen, key=lambda item: item[0]):
        value = _gathered(parameter).to("cpu").contiguous()
        digest.update(f"{name}\0{value.dtype}\0{list(value.shape)}\0".encode())
        if value.numel():
            out = bytearray(value.numel() * value.element_size())
            torch.frombuffer(out, dtype=value.dtype).view(value.shape).copy_(value)
            digest.update(out)
    return digest.hexdigest()
