"""Errors. Each has the code of the C interface and a message: what failed, on what, why, and what to do next."""
from __future__ import annotations

from typing import Dict, Type


class AtollError(Exception):
    """Base of all errors of this package. `code` is an atl_code, whose numbers are gRPC's."""

    code = 2

    def __init__(self, message: str, code: int = 0):
        super().__init__(message)
        if code:
            self.code = code


class Cancelled(AtollError):
    """The caller stopped the worker."""

    code = 1


class InvalidArgument(AtollError):
    """An option, a tensor or an answer is wrong; the message names it."""

    code = 3


class DeadlineExceeded(AtollError):
    """No event within the timeout."""

    code = 4


class NotFound(AtollError):
    """A file, the library, the engine, or a version that is not published."""

    code = 5


class AlreadyExists(AtollError):
    """The worker's name, its state directory, or what an open run has, is in use."""

    code = 6


class PermissionDenied(AtollError):
    """The caller may not do this."""

    code = 7


class ResourceExhausted(AtollError):
    """A limit of the run is reached."""

    code = 8


class FailedPrecondition(AtollError):
    """The call does not fit what happened before, or the run rejects this worker."""

    code = 9


class Aborted(AtollError):
    """The run gave the operation up."""

    code = 10


class Unimplemented(AtollError):
    """This version cannot do it."""

    code = 12


class Internal(AtollError):
    """The engine ended unexpectedly."""

    code = 13


class Unavailable(AtollError):
    """No coordinator answers."""

    code = 14


class DataLoss(AtollError):
    """Stored or received bytes are damaged."""

    code = 15


class Unauthenticated(AtollError):
    """The token or the certificate is wrong."""

    code = 16


_BY_CODE: Dict[int, Type[AtollError]] = {
    kind.code: kind
    for kind in (Cancelled, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists, PermissionDenied, ResourceExhausted,
                 FailedPrecondition, Aborted, Unimplemented, Internal, Unavailable, DataLoss, Unauthenticated)
}


def error_of(code: int, message: str) -> AtollError:
    """The error of an atl_code."""
    return _BY_CODE.get(code, AtollError)(message, code)
