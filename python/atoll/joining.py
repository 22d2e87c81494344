"""atoll.join and atoll.pull: from the user's objects to a running worker."""
from __future__ import annotations

import math
import os
import sys
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

from .client import Snapshot, pull_views
from .data import DataPosition
from .distributed import Island, find_island
from .errors import FailedPrecondition, InvalidArgument
from .inner import Extra, Inner
from .model import ArrayModel, Model
from .open_runs import Uses, check_unused
from .pass_journal import PassJournal
from .progress import on_terminal
from .ranks import check_alike, together
from .replica import Replica
from .run import Run
from .session import Session

Path = Union[str, "os.PathLike[str]"]

PATHS = ("state_dir", "log_file", "token_file", "tls_ca", "tls_cert", "tls_key", "engine")


def join(coordinator: str, model: Any, optimizer: Any = None, *, state_dir: Path, name: Optional[str] = None, counts: Any = None,
         learning_rate: str = "run", evaluate: Optional[Callable[..., Any]] = None, also_save: Optional[Dict[str, Any]] = None,
         base_fingerprint: Optional[str] = None, island: Any = "auto", progress: Optional[bool] = None, check_finite: bool = True,
         watch_loss: bool = True, buffers: Any = None, max_batches_per_step: int = 1000, max_seconds_per_step: float = 3600.0,
         **options: Any) -> Run:
    """Joins a run and returns when the parameters are in the model and the first step is due.

    coordinator       host:port of the run's coordinator
    model             a torch.nn.Module, or a dict of writable float32 arrays
    optimizer         the inner optimizer, or a list of several; None: the loop calls run.step()
    state_dir         folder where this worker keeps what it needs after a crash; one for each worker
    name              the worker's name; default: the host's name
    counts            of several optimizers: the one whose steps count
    learning_rate     "run": the run's schedule sets it before each step; "mine": your own scheduler does
    evaluate          function (model, max_batches) -> loss, or (loss, tokens), on held-out data
    also_save         {name: object with state_dict and load_state_dict} that is kept too, such as a scheduler
    base_fingerprint  replaces the hash of the frozen parameters, on which all workers must agree; "" turns it off
    island            "auto": all ranks of torch.distributed are this one worker; False: this process alone; or a process group
    progress          None: a live line on a terminal and a plain line every 30 s elsewhere; False: nothing
    check_finite      check the gradients before each step; False: only the push is checked
    watch_loss        take the loss from backward(); False: only run.report(loss) and run.loss
    buffers           None: buffers stay local; "mean": float buffers of a module, such as BatchNorm's statistics, become the mean of
                      all workers at each exchange. All workers must choose the same. With arrays: names of those that are no
                      parameters
    max_batches_per_step, max_seconds_per_step
                      when no optimizer step was taken for so long, the loop gets an error
    options           further options of atoll-worker, with _ for -: token_file, tls_ca, tls_cert, tls_key, insecure_token,
                      drain_seconds, wait_forever, expect_run, log_file, log_level, engine, data_fingerprint, ...
    """
    options, state_dir = _absolute(options), _absolute({"state_dir": state_dir})["state_dir"]
    ranks = find_island(island)
    if evaluate is not None and not callable(evaluate):
        raise InvalidArgument("evaluate must be a function (model, max_batches) that returns the loss, or (loss, tokens), and is "
                              f"{type(evaluate).__name__} {evaluate!r}")

    def make() -> Tuple[Model, Inner, Extra]:
        parameters = _model_of(model, ranks, base_fingerprint, buffers)
        return parameters, _inner_of(optimizer, counts, parameters, learning_rate, check_finite, watch_loss), Extra(also_save)

    parameters, inner, extra = together(ranks, make)
    check_alike(ranks, parameters, inner, {
        "learning_rate": learning_rate, "check_finite": check_finite, "buffers": buffers, "also_save": sorted(also_save or {}),
        "evaluate": "none" if evaluate is None else "a function"})
    data = DataPosition(ranks.rank, ranks.size, PassJournal(state_dir or None, ranks.rank))
    replica = Replica(parameters, inner, data, ranks, extra, evaluate)
    if progress is not False and on_terminal() and ranks.rank == 0 and not {"log_file", "log-file"} & options.keys():
        options["log_file"] = _log_beside(state_dir)  # its lines would break the live line
    given = {"coordinator": coordinator, "state_dir": state_dir, "name": name, "device": parameters.device,
             "device_name": parameters.device_name or None, "base_fingerprint": parameters.fingerprint or None,
             "threads": _threads(), **options}
    uses = Uses([*(("the optimizer", one) for one in inner.held()), *(("the model", one) for one in parameters.held())],
                state_dir if ranks.rank == 0 else "")
    check_unused(uses)
    session = Session(given, parameters.specs, replica, ranks, progress)
    return Run(session, inner, data, ranks.size, max_batches_per_step, max_seconds_per_step, uses)._start()


def pull(coordinator: str, **options: Any) -> Snapshot:
    """The newest published version: a dict of name to tensor, with `.version` and `.run`.

    PyTorch tensors where PyTorch is installed, otherwise NumPy arrays, otherwise memoryviews. `options`: as of join. Waits at most a
    minute for a coordinator that does not answer, or a run without a published version; with wait_forever=True, until there is one.
    """
    version, run, found = pull_views({"coordinator": coordinator, **_absolute(options)})
    snapshot = Snapshot()
    snapshot.version, snapshot.run = version, run
    make = _array_maker()
    averaged = {tensor["name"] for tensor in run.get("tensors", []) if tensor.get("averaged")}
    for name, shape, values in found:
        if name in averaged and name.split(".")[-1] == "running_var":
            _raise_to_zero(memoryview(values).cast("f"))
        snapshot[name] = make(values, shape)
    return snapshot


def count_parameters(model: Any, buffers: Any = None) -> int:
    """The number for model.external.parameters: how many values a worker with this model exchanges. `model`, `buffers`: as of join.

    Tied weights count once, frozen parameters not at all, and averaged buffers do.
    """
    return sum(math.prod(spec.shape) for spec in _model_of(model, Island(), "", buffers).specs)


def _absolute(options: Dict[str, Any]) -> Dict[str, Any]:
    """A restart of the worker opens the same files, also after os.chdir(). `~` is the home folder, as in a shell."""
    def resolve(name: str, value: Any) -> Any:
        if name.replace("-", "_") not in PATHS or value is None and name != "state_dir":
            return value
        path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else value
        if not isinstance(path, str):
            raise InvalidArgument(f"{name} is {value!r}: give a path as text or as a pathlib.Path")
        try:
            if b"\0" in os.fsencode(path):
                raise InvalidArgument(f"{name} is {path!r}: a path cannot have a NUL character; remove it")
        except UnicodeEncodeError as failure:
            raise InvalidArgument(f"{name} is {path!r}: {failure.reason}; give a path of valid text") from None
        return os.path.abspath(os.path.expanduser(path)) if path else path

    return {name: resolve(name, value) for name, value in options.items()}


def _log_beside(state_dir: Path) -> Optional[str]:
    """STATE_DIR.log, the same for every spelling of the folder; its own folder is made. None: the engine rejects this state_dir."""
    if not os.fspath(state_dir):
        return None
    path = f"{os.path.abspath(os.fspath(state_dir))}.log"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError as failure:
        raise FailedPrecondition(f"cannot make the folder of state_dir {os.fspath(state_dir)!r}: {failure}. Choose another state_dir") from None
    return path


def _raise_to_zero(values: Any) -> None:
    """A codec may leave a variance a little below zero, whose root is not a number."""
    for index, value in enumerate(values):
        if value < 0:
            values[index] = 0.0


def _model_of(model: Any, island: Island, base_fingerprint: Optional[str], buffers: Any) -> Model:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        from .torch_model import TorchModel
        if buffers not in (None, "local", "mean"):
            raise InvalidArgument(f"buffers is {buffers!r}: use None, so that buffers stay local, or 'mean' for the mean of all workers")
        return TorchModel(model, island, base_fingerprint, average_buffers=buffers == "mean")
    if isinstance(model, Model):
        return model
    if isinstance(model, Mapping):
        if island.size > 1:
            raise InvalidArgument("a dict of arrays cannot be shared by the ranks of torch.distributed: give a torch.nn.Module, or "
                                  "island=False")
        if isinstance(buffers, str) and buffers != "local":
            raise InvalidArgument(f"buffers is {buffers!r}, and the model is a dict of arrays: give the list of those to average, such as "
                                  "buffers=['running_mean']")
        return ArrayModel(model, () if buffers in (None, "local") else buffers)
    raise InvalidArgument(f"the model is a {type(model).__name__}: give a torch.nn.Module, or a dict of writable float32 arrays")


def _inner_of(optimizer: Any, counts: Any, model: Model, learning_rate: str, check_finite: bool, watch_loss: bool) -> Inner:
    if optimizer is None:
        return Inner()
    if "torch" not in sys.modules:
        raise InvalidArgument(f"the optimizer is a {type(optimizer).__name__}: give a torch.optim.Optimizer, or None and call run.step()")
    from .torch_inner import TorchInner
    return TorchInner(optimizer, counts, list(getattr(model, "parameters", [])), learning_rate, check_finite, watch_loss)


def _threads() -> int:
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch is not None else 1


def _array_maker() -> Callable[[bytearray, Any], Any]:
    try:
        import torch
        return lambda values, shape: torch.frombuffer(values, dtype=torch.float32).reshape(shape)
    except ImportError:
        pass
    try:
        import numpy
        return lambda values, shape: numpy.frombuffer(values, dtype=numpy.float32).reshape(shape)
    except ImportError:
        return lambda values, shape: memoryview(values).cast("f", shape) if shape else memoryview(values).cast("f")
