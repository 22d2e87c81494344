"""State as bytes: nested Python values and tensors, without pickle. Reading runs no code of the file.

Layout, all numbers little-endian:

    8 bytes   "ATLSTAT1"
    8 bytes   length of the header, uint64
    header    JSON, UTF-8: {"tree": VALUE, "blobs": [[kind, dtype, shape, offset, bytes], ...], "bytes": of all blobs}
    zeros     up to the next multiple of 64
    blobs     raw values, each at a multiple of 64 from the end of these zeros

A VALUE is null, true, false, a string, a list [tag, ...] or, for numbers, ["i", "123"] and ["f", "0x1.8p+1"]:

    ["l", VALUE...]  list          ["t", VALUE...]  tuple        ["d", [KEY, VALUE]...]  dict, the keys being VALUEs too
    ["b", INDEX]     bytes         ["n", INDEX]     NumPy array  ["p", INDEX]            PyTorch tensor

A type that is not listed is rejected with its place in the tree.
"""
from __future__ import annotations

import json
import struct
import sys
from typing import Any, List, Set, Tuple

from .errors import DataLoss, InvalidArgument

MAGIC = b"ATLSTAT1"
_ALIGNMENT = 64
_PREFIX = struct.Struct("<8sQ")


def check(value: Any, path: str = "state") -> None:
    """InvalidArgument when pack() could not keep the value. Copies no tensor."""
    _Packer().tree(value, path)


def pack(value: Any) -> bytearray:
    """The bytes of a value. InvalidArgument names the first part of a type that cannot be kept."""
    packer = _Packer()
    tree = packer.tree(value, "state")
    header = json.dumps({"tree": tree, "blobs": packer.table, "bytes": packer.size}, separators=(",", ":")).encode()
    begin = _aligned(_PREFIX.size + len(header))
    out = bytearray(begin + packer.size)
    out[:_PREFIX.size + len(header)] = _PREFIX.pack(MAGIC, len(header)) + header
    for (_, _, _, offset, size), copy_to in zip(packer.table, packer.blobs):
        if size:
            copy_to(out, begin + offset)
    return out


def unpack(data: Any) -> Any:
    """The value of bytes that pack() made; tensors are copies. DataLoss when they are not such bytes."""
    view = memoryview(data).cast("B")
    try:
        magic, length = _PREFIX.unpack_from(view, 0)
        if magic != MAGIC:
            raise DataLoss("the saved state does not begin with ATLSTAT1: it is damaged, or another program wrote it")
        header = json.loads(bytes(view[_PREFIX.size:_PREFIX.size + length]))
        blobs = view[_aligned(_PREFIX.size + length):]
        if len(blobs) != header["bytes"]:
            raise DataLoss(f"the saved state is damaged: it has {len(blobs)} bytes of tensors, and {header['bytes']} are announced")
        return _Unpacker(blobs, header["blobs"]).decode(header["tree"])
    except (struct.error, ValueError, KeyError, IndexError, TypeError, AttributeError, RuntimeError, OverflowError, MemoryError) as failure:
        raise DataLoss(f"the saved state is damaged: {failure}") from None


def nested_too_deeply(path: str) -> InvalidArgument:
    return InvalidArgument(f"{path} contains itself, or is nested too deeply to be saved: use flatter lists and dicts")


def _aligned(size: int) -> int:
    return (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT


class _Packer:
    def __init__(self) -> None:
        self.table: List[Tuple[str, str, List[int], int, int]] = []
        self.blobs: List[Any] = []  # functions (out, offset) that copy the bytes there, from a device too
        self.size = 0
        self._open: Set[int] = set()  # the containers around the value, by id

    def tree(self, value: Any, path: str) -> Any:
        try:
            return self.encode(value, path)
        except RecursionError:
            raise nested_too_deeply(path) from None

    def encode(self, value: Any, path: str) -> Any:
        if value is None or isinstance(value, (bool, str)):
            return value
        if type(value) is int:
            return ["i", str(value)]
        if type(value) is float:
            return ["f", value.hex()]
        if isinstance(value, (list, tuple, dict)):
            if id(value) in self._open:
                raise InvalidArgument(f"{path} is a {type(value).__name__} that contains itself, which cannot be saved: remove the reference")
            self._open.add(id(value))
            encoded = self._container(value, path)
            self._open.discard(id(value))
            return encoded
        if isinstance(value, (bytes, bytearray)):
            return self._blob("b", "", [], len(value), lambda out, at: out.__setitem__(slice(at, at + len(value)), value))
        return self._array(value, path)

    def _container(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return ["d", *([self.encode(key, f"{path} (a key)"), self.encode(item, f"{path}[{key!r}]")] for key, item in value.items())]
        return ["l" if isinstance(value, list) else "t", *(self.encode(item, f"{path}[{i}]") for i, item in enumerate(value))]

    def _array(self, value: Any, path: str) -> Any:
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        if torch is not None and isinstance(value, torch.Tensor):
            if value.is_quantized or value.layout != torch.strided or hasattr(value, "full_tensor"):
                raise InvalidArgument(f"{path} is a tensor of a kind that cannot be saved: only plain dense tensors can")
            if value.is_meta:
                raise InvalidArgument(f"{path} is a tensor on the device meta, which has no values to save: give it values first")
            size = value.numel() * value.element_size()
            return self._blob("p", str(value.dtype).replace("torch.", ""), list(value.shape), size,
                              lambda out, at: _copy_tensor(torch, value, out, at))
        if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
            _check_plain(numpy, value, path)
        if numpy is not None and isinstance(value, numpy.ndarray) and not value.dtype.hasobject:
            return self._blob("n", value.dtype.str, list(value.shape), value.nbytes,
                              lambda out, at: numpy.copyto(numpy.ndarray(value.shape, value.dtype, out, at), value))
        if numpy is not None and isinstance(value, numpy.generic):
            return self.encode(value.item(), path)
        raise InvalidArgument(f"{path} is of type {type(value).__name__}, which cannot be saved: use numbers, strings, lists, "
                              "tuples, dicts, bytes, arrays and tensors")

    def _blob(self, kind: str, dtype: str, shape: List[int], size: int, data: Any) -> Any:
        self.table.append((kind, dtype, shape, self.size, size))
        self.blobs.append(data)
        self.size = _aligned(self.size + size)
        return [kind, len(self.table) - 1]


class _Unpacker:
    def __init__(self, blobs: memoryview, table: List[Any]):
        self.blobs, self.table = blobs, table

    def decode(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, str)):
            return value
        tag, rest = value[0], value[1:]
        if tag == "i":
            return int(rest[0])
        if tag == "f":
            return float.fromhex(rest[0])
        if tag == "l":
            return [self.decode(item) for item in rest]
        if tag == "t":
            return tuple(self.decode(item) for item in rest)
        if tag == "d":
            return {self.decode(key): self.decode(item) for key, item in rest}
        if tag in ("b", "n", "p"):
            return self._blob(tag, rest[0])
        raise DataLoss(f"the saved state has the unknown tag {tag!r}: a newer version wrote it, or it is damaged")

    def _blob(self, tag: str, index: int) -> Any:
        kind, dtype, shape, offset, size = self.table[index]
        if kind != tag or offset < 0 or size < 0 or offset + size > len(self.blobs):
            raise DataLoss("the saved state is damaged: it ends before its last tensor")
        data = self.blobs[offset:offset + size]
        if tag == "b":
            return bytes(data)
        if tag == "n":
            import numpy
            return numpy.frombuffer(bytes(data), dtype=numpy.dtype(dtype)).reshape(shape).copy()
        import torch
        kind_of = getattr(torch, dtype, None)
        if not isinstance(kind_of, torch.dtype):
            raise DataLoss(f"the saved state has a tensor of the unknown type {dtype!r}")
        if not size:
            return torch.empty(shape, dtype=kind_of)
        return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(kind_of).reshape(shape)


def _check_plain(numpy: Any, value: Any, path: str) -> None:
    """Arrays whose fields or mask the raw values do not have."""
    if value.dtype.names is not None:
        raise InvalidArgument(f"{path} is a NumPy array with the fields {', '.join(value.dtype.names)}, which cannot be saved: save a dict "
                              "with one array for each field")
    if isinstance(value, numpy.ma.MaskedArray):
        raise InvalidArgument(f"{path} is a masked NumPy array, which cannot be saved: save its data and its mask")


def _copy_tensor(torch: Any, value: Any, out: bytearray, at: int) -> None:
    with torch.no_grad():
        torch.frombuffer(out, dtype=value.dtype, count=value.numel(), offset=at).view(value.shape).copy_(value)
