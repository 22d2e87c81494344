"""The low level: a worker whose loop you write event by event. Needs neither PyTorch nor NumPy.

    with Client(options, tensors) as client:
        while True:
            event = client.next()
            if event.kind is EventKind.END:
                break
            ...                       # see EventKind
            client.answer(...)

`atoll.join` does this for PyTorch and NumPy; use Client for anything else.
"""
from __future__ import annotations

import ctypes
import dataclasses
import enum
import json
import os
import weakref
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _library
from ._counts import whole_number
from .errors import AtollError, FailedPrecondition
from .progress import warn

POLL_SECONDS = 0.1  # within which Ctrl-C ends a pull

Options = Mapping[str, Union[str, int, float, bool, os.PathLike, None]]


class Named(enum.IntEnum):
    """A number that is shown by its name, such as DRAINED. Newer versions of Python would show the number."""

    def __str__(self) -> str:
        return self.name


class EventKind(Named):
    """What the engine asks for. include/atoll/client.h specifies each."""

    JOINED = 1
    READ = 2
    WRITE = 3
    STEP = 4
    PARTITION = 5
    SEEK = 6
    SAVE = 7
    LOAD = 8
    EVALUATE = 9
    END = 10


class Outcome(Named):
    """How an event was carried out."""

    DONE = 0
    NOT_FINITE = 1
    DECLINED = 2
    FAILED = 3


class EndReason(Named):
    """Why a worker has left."""

    FINISHED = 1
    DRAINED = 2
    STOPPED = 3
    RESTART = 4
    FAILED = 5


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """One tensor of the model. Its index is its place in the list that opened the client.

    `averaged`: no parameter, such as a running statistic; a version has the mean of the workers' values.
    """

    name: str
    shape: Tuple[int, ...]
    embedding: bool = False
    averaged: bool = False

    @property
    def flags(self) -> int:
        """ATL_TENSOR_* of client.h."""
        return (1 if self.embedding else 0) | (2 if self.averaged else 0)


@dataclasses.dataclass(frozen=True)
class Piece:
    """READ: write the tensor to `values`. WRITE: read it from there. Released with the event's answer."""

    tensor: int
    values: memoryview  # of float32, flat, row-major


@dataclasses.dataclass(frozen=True)
class Event:
    """One event; which fields count depends on `kind`."""

    kind: EventKind
    pieces: Tuple[Piece, ...] = ()
    learning_rate: float = 0.0
    version: int = 0
    local_step: int = 0
    partition: int = 0
    partitions: int = 1
    samples: int = 0
    state: Optional[memoryview] = None
    max_batches: int = 0
    exit_code: int = 0
    end_code: int = 0
    end_reason: Optional[EndReason] = None
    text: str = ""


def _close_after(library: Any, handle: Any, places: List[Any]) -> None:
    """Closes the handle when the last of these objects has gone."""
    left = [len(places)]

    def one_less() -> None:
        left[0] -= 1
        if left[0] == 0:
            library.close(handle)

    for place in places:
        weakref.finalize(place, one_less).atexit = False


class Client:
    """One worker. Use it from one thread; status, drain and stop may be called from any thread, also while it is closed.

    No lock guards the handle: the library refuses a closed one, and gives none twice. A lock would stop a signal handler
    that interrupts its own thread here, and a fork.
    """

    def __init__(self, options: Options, tensors: Sequence[TensorSpec]):
        """Starts the engine. `options`: names of client.h with `_` or `-`, such as coordinator and state_dir."""
        self._handle: Any = None
        self._views: List[memoryview] = []  # of the last event
        self._places: List[Any] = []  # weak references to the memory of the library that something may look at
        self._last_status: Dict[str, Any] = {}
        self._library = _library.load()
        self.tensors = list(tensors)
        self._handle = self._library.open(option_list(options), [(t.name, t.shape, t.flags) for t in self.tensors])

    def next(self, timeout_seconds: float = -1.0) -> Optional[Event]:
        """Waits for the next event; None when the timeout is over. A negative timeout never ends."""
        record = self._library.next(self._open(), timeout_seconds)
        if record is None:
            return None
        try:
            kind = EventKind(record.kind)
        except ValueError:
            raise FailedPrecondition(f"the engine sent an event of the unknown kind {record.kind}: install the atoll package "
                                     "of the engine's version") from None
        if kind is EventKind.END:
            self.status()
        event = _event(kind, record)
        self._views = [piece.values for piece in event.pieces] + ([event.state] if event.state is not None else [])
        self._places += [weakref.ref(view.obj) for view in self._views if isinstance(view.obj, ctypes.Array)]
        return event

    def answer(self, outcome: Outcome = Outcome.DONE, *, message: str = "", loss: float = float("nan"),
               gradient_norm: float = float("nan"), data_seconds: float = 0.0, tokens: int = 1, samples: int = 0,
               optimizer_steps: int = 0, state: Optional[bytearray] = None, state_kind: str = "") -> None:
        """Answers the event that next() returned last. Its views are released: an array that was made of one must not be used any more.

        An answer that is rejected leaves the event and its views as they were.
        """
        self._library.answer(self._open(), int(outcome), message, state, state_kind, loss=loss, gradient_norm=gradient_norm,
                             data_seconds=data_seconds, tokens=whole_number("tokens", tokens), samples=whole_number("samples", samples),
                             optimizer_steps=whole_number("optimizer_steps", optimizer_steps))
        self._release_views()

    def run(self) -> Dict[str, Any]:
        """The run as it was joined: its name, id and configuration, the worker's name. Empty before JOINED."""
        return _json(self._library.run_json(self._open()))

    def status(self) -> Dict[str, Any]:
        """The live status: phase, waiting_for, version, local_step, step, loss, tokens_per_second and more. Never waits.

        After close() it is the last that was seen, at END or before.
        """
        handle = self._handle
        if handle is not None:
            try:
                self._last_status = _json(self._library.status_json(handle))
            except FailedPrecondition:
                if not self.closed:
                    raise
                # Another thread closed it just now.
        return dict(self._last_status)

    def drain(self) -> None:
        """Leave after the steps done so far are pushed. Returns at once; go on with next() until END."""
        self._library.drain(self._open())

    def stop(self) -> None:
        """Leave without a push. Returns at once; END follows."""
        self._library.stop(self._open())

    def close(self) -> None:
        """Ends the engine if it still runs. May be called again."""
        handle, self._handle = self._handle, None
        if handle is None:
            return
        if self._release_views():
            self._library.close(handle)
            return
        # To unmap memory that an array looks at would end the interpreter at the array's next use.
        try:
            self._library.stop(handle)
        except AtollError:
            pass  # it has ended
        _close_after(self._library, handle, [place for place in (found() for found in self._places) if place is not None])
        warn("an array that was made of the values of an event is still in use after Client.close(): the client's memory stays as long as "
             "the array. Copy the values before the event's answer", stacklevel=2)

    def _release_views(self) -> bool:
        """Whether nothing looks at the library's memory any more."""
        for view in self._views:
            try:
                view.release()
            except BufferError:
                pass  # of an object over it
        self._views = []
        # A view of a view looks at the same place, and keeps it alive without the first.
        self._places = [place for place in self._places if place() is not None]
        return not self._places

    @property
    def closed(self) -> bool:
        return self._handle is None

    def _open(self) -> Any:
        if self._handle is None:
            raise FailedPrecondition("this client is closed: open a new one")
        return self._handle

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


class Snapshot(Dict[str, Any]):
    """A published version: a dict of name to tensor."""

    version: int = 0
    run: Dict[str, Any] = {}


def pull_views(options: Options) -> Tuple[int, Dict[str, Any], List[Tuple[str, Tuple[int, ...], bytearray]]]:
    """(version, run, [(name, shape, float32 bytes)]) of the newest published version."""
    library = _library.load()
    handle = library.snapshot_open(option_list(options))
    try:
        while not library.snapshot_wait(handle, POLL_SECONDS):
            pass  # Python handles signals here
        found = []
        for index in range(library.snapshot_tensor_count(handle)):
            name, shape, values = library.snapshot_tensor(handle, index)
            found.append((name, shape, bytearray(values.cast("B"))))
        return library.snapshot_version(handle), _json(library.snapshot_run_json(handle)), found
    finally:
        library.snapshot_close(handle)


def option_list(options: Options) -> List[Tuple[str, str]]:
    """Options as the library takes them. None leaves an option out; True and False become words.

    InvalidArgument names an option whose name or value the library cannot take.
    """
    found = []
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, bool):
            value = "true" if value else "false"
        _library.encoded(name, "the name of an option")
        text = str(value)
        _library.encoded(text, f"the option {name}")
        found.append((name.replace("_", "-"), text))
    return found


def _event(kind: EventKind, record: Any) -> Event:
    pieces: Tuple[Piece, ...] = ()
    if kind in (EventKind.READ, EventKind.WRITE):
        pieces = tuple(Piece(piece.tensor, _library.floats_at(piece.values, piece.elements))
                       for piece in record.pieces[:record.piece_count])
    if kind is EventKind.END:
        return Event(kind, exit_code=record.exit_code, end_code=record.end_code, end_reason=EndReason(record.end_reason),
                     text=(record.text or b"").decode(errors="replace"))
    state = _library.bytes_at(record.state, record.state_bytes) if kind is EventKind.LOAD else None
    return Event(kind, pieces, record.learning_rate, record.version, record.local_step, record.partition, record.partitions,
                 record.samples, state, record.max_batches)


def _json(text: str) -> Dict[str, Any]:
    return json.loads(text) if text else {}
