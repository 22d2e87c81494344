"""Atoll for Python: makes any training loop a worker of an Atoll run.

    with atoll.join("host:7600", model, opt, name="w0", state_dir="s") as run:
        for batch in run.steps(loader):      # ends on drain, stop or the end of the run
            loss = model(batch).loss
            loss.backward(); opt.step(); opt.zero_grad()

docs/reference/python.md specifies the behaviour. `atoll.transformers` and `atoll.lightning` have callbacks.
"""
from ._version import __version__
from .client import Client, EndReason, Event, EventKind, Outcome, Piece, Snapshot, TensorSpec
from .errors import (Aborted, AlreadyExists, AtollError, Cancelled, DataLoss, DeadlineExceeded, FailedPrecondition, Internal,
                     InvalidArgument, NotFound, PermissionDenied, ResourceExhausted, Unauthenticated, Unavailable, Unimplemented)
from .joining import count_parameters, join, pull
from .run import Run
from .token_dataset import TokenDataset

__all__ = ["Aborted", "AlreadyExists", "AtollError", "Cancelled", "Client", "DataLoss", "DeadlineExceeded", "EndReason", "Event",
           "EventKind", "FailedPrecondition", "Internal", "InvalidArgument", "NotFound", "Outcome", "PermissionDenied", "Piece",
           "ResourceExhausted", "Run", "Snapshot", "TensorSpec", "TokenDataset", "Unauthenticated", "Unavailable", "Unimplemented", "__version__",
           "count_parameters", "join", "pull"]
