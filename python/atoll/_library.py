"""The C interface (include/atoll/client.h) by ctypes. No other module of the package calls a library.

Pointers in an event stay valid until its answer. Views of foreign memory are memoryviews of float32 ("f") or bytes ("B").
"""
from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Optional, Sequence, Tuple

from .errors import AtollError, FailedPrecondition, InvalidArgument, NotFound, error_of

API_VERSION = 2
OK = 0
DEADLINE_EXCEEDED = 4
NAME = "libatoll_client.so.1"


class ErrorRecord(Structure):
    _fields_ = [("code", c_int32), ("message", c_char * 2044)]


class OptionRecord(Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class TensorRecord(Structure):
    _fields_ = [("size", c_uint32), ("rank", c_uint32), ("name", c_char_p), ("shape", POINTER(c_int64)), ("flags", c_uint32),
                ("reserved", c_uint32)]


class PieceRecord(Structure):
    _fields_ = [("tensor", c_uint32), ("reserved", c_uint32), ("elements", c_uint64), ("values", c_void_p)]


class EventRecord(Structure):
    _fields_ = [("size", c_uint32), ("kind", c_uint32), ("pieces", POINTER(PieceRecord)), ("piece_count", c_uint64),
                ("learning_rate", c_double), ("version", c_uint64), ("local_step", c_uint64), ("partition", c_uint32),
                ("partitions", c_uint32), ("samples", c_uint64), ("state", c_void_p), ("state_bytes", c_uint64),
                ("max_batches", c_uint32), ("exit_code", c_int32), ("end_code", c_int32), ("end_reason", c_uint32),
                ("text", c_char_p)]


class AnswerRecord(Structure):
    _fields_ = [("size", c_uint32), ("outcome", c_uint32), ("message", c_char_p), ("loss", c_double), ("gradient_norm", c_double),
                ("data_seconds", c_double), ("tokens", c_uint64), ("samples", c_uint64), ("optimizer_steps", c_uint64),
                ("state", c_void_p), ("state_bytes", c_uint64), ("state_kind", c_char_p)]


_ERROR = POINTER(ErrorRecord)
_OPTIONS = POINTER(OptionRecord)
_TENSORS = POINTER(TensorRecord)

# name: (result, arguments)
_FUNCTIONS = {
    "atl_api_version": (c_uint32, []),
    "atl_version": (c_char_p, []),
    "atl_open": (c_int32, [_OPTIONS, c_size_t, _TENSORS, c_size_t, POINTER(c_void_p), _ERROR]),
    "atl_next": (c_int32, [c_void_p, c_double, POINTER(EventRecord), _ERROR]),
    "atl_answer": (c_int32, [c_void_p, POINTER(AnswerRecord), _ERROR]),
    "atl_run_json": (c_char_p, [c_void_p]),
    "atl_status": (c_int32, [c_void_p, POINTER(c_void_p), _ERROR]),
    "atl_free": (None, [c_void_p]),
    "atl_drain": (c_int32, [c_void_p, _ERROR]),
    "atl_stop": (c_int32, [c_void_p, _ERROR]),
    "atl_close": (None, [c_void_p]),
    "atl_snapshot_open": (c_int32, [_OPTIONS, c_size_t, POINTER(c_void_p), _ERROR]),
    "atl_snapshot_wait": (c_int32, [c_void_p, c_double, _ERROR]),
    "atl_snapshot_version": (c_uint64, [c_void_p]),
    "atl_snapshot_tensor_count": (c_size_t, [c_void_p]),
    "atl_snapshot_run_json": (c_char_p, [c_void_p]),
    "atl_snapshot_tensor": (c_int32, [c_void_p, c_size_t, _TENSORS, POINTER(POINTER(c_float)), POINTER(c_uint64), _ERROR]),
    "atl_snapshot_close": (None, [c_void_p]),
}


def candidates() -> Sequence[str]:
    """Where the library may be, in the order of the search."""
    chosen = os.environ.get("ATOLL_LIBRARY")
    if chosen:
        return [chosen]
    package = pathlib.Path(__file__).resolve().parent
    # In a wheel; beside PREFIX/lib/python3/dist-packages/atoll; in the loader's path.
    places = (package / "_native" / NAME, package.parents[2] / NAME)
    return [*(str(place) for place in places if place.exists()), NAME]


class Library:
    """The loaded library. Raises AtollError subclasses for every code that is not ATL_OK."""

    def __init__(self) -> None:
        self._library = self._load()
        # The first release had this function already.
        found = self._library.atl_api_version()
        if found < API_VERSION:
            raise FailedPrecondition(f"the library {self.path} has interface version {found}, this package needs {API_VERSION} or "
                                     "newer: install a newer Atoll")
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments

    def _load(self) -> Any:
        failures = []
        for path in candidates():
            try:
                library = ctypes.CDLL(path)
            except OSError as failure:
                failures.append(str(failure))
                continue
            if not hasattr(library, "atl_api_version"):
                failures.append(f"{path} is another library")
                continue
            self.path = path
            return library
        raise NotFound(f"cannot load {NAME}: {'; '.join(failures)}. Install Atoll, or build the target `programs`, "
                       "and set ATOLL_LIBRARY to the path of the library")

    def version(self) -> str:
        return self._library.atl_version().decode()

    def open(self, options: Sequence[Tuple[str, str]], tensors: Sequence[Tuple[str, Sequence[int], int]]) -> c_void_p:
        """Starts the engine. `tensors`: (name, shape, flags)."""
        records = (TensorRecord * len(tensors))()
        shapes = []  # alive until the call has returned
        for record, (name, shape, flags) in zip(records, tensors):
            shapes.append((c_int64 * max(1, len(shape)))(*shape))
            record.size, record.rank, record.name = ctypes.sizeof(TensorRecord), len(shape), encoded(name, "the name of a tensor")
            record.shape, record.flags = ctypes.cast(shapes[-1], POINTER(c_int64)), flags
        client = c_void_p()
        self._call("atl_open", _options(options), len(options), records, len(tensors), ctypes.byref(client))
        return client

    def next(self, client: c_void_p, timeout_seconds: float) -> Optional[EventRecord]:
        """None: no event yet."""
        event = EventRecord(size=ctypes.sizeof(EventRecord))
        error = ErrorRecord()
        code = self._library.atl_next(client, timeout_seconds, ctypes.byref(event), ctypes.byref(error))
        if code == DEADLINE_EXCEEDED:
            return None
        if code != OK:
            raise _error(code, error)
        return event

    def answer(self, client: c_void_p, outcome: int, message: str = "", state: Any = None, state_kind: str = "", **numbers: Any) -> None:
        """`state`: a bytearray; the library copies it. `numbers`: further fields of atl_answer_fields."""
        record = AnswerRecord(size=ctypes.sizeof(AnswerRecord), outcome=outcome, message=_readable(message).encode() or None,
                              state_kind=encoded(state_kind, "the answer's state_kind") or None, **numbers)
        if state is not None:
            held = (c_char * len(state)).from_buffer(state)
            record.state, record.state_bytes = ctypes.addressof(held), len(state)
        self._call("atl_answer", client, ctypes.byref(record))

    def run_json(self, client: c_void_p) -> str:
        return (self._library.atl_run_json(client) or b"").decode()

    def status_json(self, client: c_void_p) -> str:
        text = c_void_p()
        self._call("atl_status", client, ctypes.byref(text))
        try:
            return ctypes.string_at(text.value).decode() if text.value else "{}"
        finally:
            self._library.atl_free(text)

    def drain(self, client: c_void_p) -> None:
        self._call("atl_drain", client)

    def stop(self, client: c_void_p) -> None:
        self._call("atl_stop", client)

    def close(self, client: c_void_p) -> None:
        self._library.atl_close(client)

    def snapshot_open(self, options: Sequence[Tuple[str, str]]) -> c_void_p:
        """Starts to pull; snapshot_close gives it up."""
        snapshot = c_void_p()
        self._call("atl_snapshot_open", _options(options), len(options), ctypes.byref(snapshot))
        return snapshot

    def snapshot_wait(self, snapshot: c_void_p, timeout_seconds: float) -> bool:
        """False: not there yet."""
        error = ErrorRecord()
        code = self._library.atl_snapshot_wait(snapshot, timeout_seconds, ctypes.byref(error))
        if code not in (OK, DEADLINE_EXCEEDED):
            raise _error(code, error)
        return code == OK

    def snapshot_version(self, snapshot: c_void_p) -> int:
        return self._library.atl_snapshot_version(snapshot)

    def snapshot_tensor_count(self, snapshot: c_void_p) -> int:
        return self._library.atl_snapshot_tensor_count(snapshot)

    def snapshot_run_json(self, snapshot: c_void_p) -> str:
        return (self._library.atl_snapshot_run_json(snapshot) or b"").decode()

    def snapshot_tensor(self, snapshot: c_void_p, index: int) -> Tuple[str, Tuple[int, ...], memoryview]:
        """(name, shape, float32 values); the values stay valid until snapshot_close."""
        record, values, elements = TensorRecord(size=ctypes.sizeof(TensorRecord)), POINTER(c_float)(), c_uint64()
        self._call("atl_snapshot_tensor", snapshot, index, ctypes.byref(record), ctypes.byref(values), ctypes.byref(elements))
        shape = tuple(record.shape[i] for i in range(record.rank))
        return record.name.decode(), shape, floats_at(ctypes.cast(values, c_void_p).value, elements.value)

    def snapshot_close(self, snapshot: c_void_p) -> None:
        self._library.atl_snapshot_close(snapshot)

    def _call(self, name: str, *arguments: Any) -> None:
        error = ErrorRecord()
        code = getattr(self._library, name)(*arguments, ctypes.byref(error))
        if code != OK:
            raise _error(code, error)


_loaded: Optional[Library] = None


def load() -> Library:
    """The library of this process."""
    global _loaded
    if _loaded is None:
        _loaded = Library()
    return _loaded


def floats_at(address: Optional[int], elements: int) -> memoryview:
    """A writable view of float32 values in foreign memory."""
    if not address or not elements:
        return memoryview(bytearray()).cast("f")  # type: ignore[return-value]
    return memoryview((c_float * elements).from_address(address)).cast("B").cast("f")  # type: ignore[return-value]


def bytes_at(address: Optional[int], size: int) -> memoryview:
    """A view of bytes in foreign memory."""
    if not address or not size:
        return memoryview(b"")
    return memoryview((c_char * size).from_address(address)).cast("B")


def encoded(text: str, what: str) -> bytes:
    """Text for the library. InvalidArgument says `what` it is when it is no text of C in UTF-8."""
    try:
        data = text.encode()
    except UnicodeEncodeError as failure:
        raise InvalidArgument(f"{what}, {ascii(text)}, cannot be encoded in UTF-8: character {failure.start} is half of a surrogate pair; "
                              "give text without it") from None
    if 0 in data:
        raise InvalidArgument(f"{what}, {ascii(text)}, contains a zero byte: give text without it")
    return data


def _readable(text: str) -> str:
    """A text for people: what the library cannot take is escaped."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\x00")


def _options(options: Sequence[Tuple[str, str]]) -> Any:
    records = [OptionRecord(encoded(name, "the name of an option"), encoded(value, f"the option {name}")) for name, value in options]
    return (OptionRecord * max(1, len(records)))(*records)


def _error(code: int, record: ErrorRecord) -> AtollError:
    return error_of(code, record.message.decode(errors="replace"))
