"""The parameters that a run exchanges, seen as named float32 tensors. ArrayModel needs no PyTorch; TorchModel is in torch_model."""
from __future__ import annotations

import abc
import ctypes
import zlib
from typing import Any, Dict, Iterable, List, Mapping, Optional

from .client import TensorSpec
from .errors import FailedPrecondition, InvalidArgument

MAX_RANK = 8
MAX_NAME = 512


class Model(abc.ABC):
    """Reads and writes tensors by index. One thread uses it at a time."""

    specs: List[TensorSpec]
    device = "cpu"
    device_name = ""
    fingerprint = ""  # of parameters that are not exchanged; empty: none

    @abc.abstractmethod
    def read(self, index: int, out: Optional[memoryview]) -> None:
        """Copies tensor `index` to `out`. None: this rank only takes part in gathering it."""

    @abc.abstractmethod
    def write(self, index: int, values: Optional[memoryview]) -> None:
        """Copies `values` into tensor `index`, in place. None: this rank receives them from rank 0."""

    def check_unchanged(self) -> None:
        """Raises when the model no longer has the tensors that the worker joined with."""

    def checksums(self) -> List[int]:
        """One for each tensor, of the values that this rank has."""
        return []

    def kinds(self) -> List[str]:
        """The type of each tensor in memory."""
        return ["float32"] * len(self.specs)

    def held(self) -> List[Any]:
        """The caller's objects that have the values."""
        return []

    def evaluating(self) -> Any:
        """What an evaluation function gets as its first argument."""
        return self


class ArrayModel(Model):
    """A dict of writable float32 arrays: NumPy arrays, or any object with the buffer protocol. `averaged` names those that are no
    parameters."""

    def __init__(self, arrays: Mapping[str, Any], averaged: Iterable[str] = ()):
        self._given, self._arrays = arrays, dict(arrays)
        averaged = set(averaged)
        for name in averaged - set(self._arrays):
            raise InvalidArgument(f"buffers names {name!r}, which is not in the model: give names of its arrays")
        self.specs = [TensorSpec(name, tuple(_view(name, array).shape or ()), averaged=name in averaged)
                      for name, array in self._arrays.items()]
        check_specs(self.specs)
        self._names = [spec.name for spec in self.specs]

    def read(self, index: int, out: Optional[memoryview]) -> None:
        if out is not None:
            out.cast("B")[:] = self._flat(index)

    def write(self, index: int, values: Optional[memoryview]) -> None:
        if values is not None:
            self._flat(index)[:] = values.cast("B")

    def check_unchanged(self) -> None:
        for index, name in enumerate(self._names):
            self._flat(index)
            if name not in self._given:
                raise InvalidArgument(f"the parameter {name!r} is gone from the dict of arrays: a run's tensors are fixed")
            if not _same_memory(self._given[name], self._arrays[name]):
                raise InvalidArgument(f"the parameter {name!r} was replaced by another array after atoll.join, and the run has the array that "
                                      f"it joined with: change it in place, such as weights[{name!r}][...] = values")
        for name in self._given:
            if name not in self._arrays:
                raise InvalidArgument(f"the parameter {name!r} is new in the dict of arrays: a run's tensors are fixed. Remove it, or start "
                                      "a new run")

    def checksums(self) -> List[int]:
        return [zlib.crc32(self._flat(index)) for index in range(len(self._names))]

    def held(self) -> List[Any]:
        return list(self._arrays.values())

    def evaluating(self) -> Dict[str, Any]:
        return self._arrays

    def _flat(self, index: int) -> memoryview:
        spec = self.specs[index]
        view = _view(spec.name, self._arrays[spec.name])
        if view.shape != spec.shape:
            raise shape_changed(spec, view.shape)
        return view.cast("B")


def check_specs(specs: List[TensorSpec]) -> None:
    """InvalidArgument when the library could not take these tensors."""
    if all(spec.averaged for spec in specs):
        raise InvalidArgument("the model has no parameter to exchange: at least one must have requires_grad=True")
    seen = set()
    for spec in specs:
        if not 1 <= _name_bytes(spec.name) <= MAX_NAME:
            raise InvalidArgument(f"the name of a parameter must have 1 to {MAX_NAME} bytes: {spec.name[:80]!r}")
        if spec.name in seen:
            raise InvalidArgument(f"two tensors have the name {spec.name!r} once `module.` and `_orig_mod.` are removed: rename one")
        seen.add(spec.name)
        if len(spec.shape) > MAX_RANK:
            raise InvalidArgument(f"the parameter {spec.name!r} has {len(spec.shape)} dimensions; at most {MAX_RANK} are possible")
        if 0 in spec.shape:
            raise InvalidArgument(f"the parameter {spec.name!r} of shape {list(spec.shape)} has no elements: remove it, or freeze it")


def _name_bytes(name: Any) -> int:
    """The length that a name has in the run; InvalidArgument when it cannot be passed on as it is."""
    if not isinstance(name, str):
        raise InvalidArgument(f"the name of a parameter must be text, and {name!r} is a {type(name).__name__}")
    if "\0" in name:
        raise InvalidArgument(f"the name of the parameter {name[:80]!r} contains a zero byte: rename it")
    try:
        return len(name.encode())
    except UnicodeEncodeError:
        raise InvalidArgument(f"the name of the parameter {name[:80]!r} cannot be written in UTF-8: rename it") from None


def shape_changed(spec: TensorSpec, shape: Any) -> FailedPrecondition:
    return FailedPrecondition(f"the parameter {spec.name!r} has the shape {list(shape)}, but had {list(spec.shape)} when the worker "
                              "joined: a run's tensors are fixed. Change the model before atoll.join, in a new run")


def _same_memory(one: Any, other: Any) -> bool:
    """Whether both have their values at one place. Some mappings make a new view for each access."""
    if one is other:
        return True
    try:
        places = [ctypes.addressof(ctypes.c_char.from_buffer(memoryview(array).cast("B"))) for array in (one, other)]
    except (TypeError, ValueError):  # no writable array
        return False
    return places[0] == places[1]


def _view(name: str, array: Any) -> memoryview:
    try:
        view = memoryview(array)
    except TypeError:
        raise InvalidArgument(f"the parameter {name!r} is a {type(array).__name__}: give a torch.nn.Module, or a dict of writable "
                              "float32 arrays") from None
    if view.format not in ("f", "<f", "=f", "@f"):
        raise InvalidArgument(f"the parameter {name!r} has the unknown type {getattr(array, 'dtype', view.format)}: arrays must be float32")
    if view.readonly or not view.c_contiguous:
        raise InvalidArgument(f"the parameter {name!r} must be writable and contiguous: use numpy.ascontiguousarray(...).copy()")
    return view
