"""Carries out the engine's events on a model, its optimizer and its data. Every rank of an island has one."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from . import random_state, state
from ._counts import SHOWN
from .client import Event, EventKind, Outcome
from .data import DataPosition
from .distributed import Island
from .errors import AtollError, FailedPrecondition, InvalidArgument
from .inner import Extra, Inner
from .model import Model
from .progress import warn
from .ranks import Agreement

STATE_VERSION = 1
LARGEST_LOSS = 1e30  # in magnitude, of an evaluation


def message_of(event: Event) -> Dict[str, Any]:
    """What the other ranks must know of an event: no views of rank 0's memory."""
    return {"kind": int(event.kind), "tensors": [piece.tensor for piece in event.pieces], "learning_rate": event.learning_rate,
            "version": event.version, "local_step": event.local_step, "partition": event.partition, "partitions": event.partitions,
            "samples": event.samples, "max_batches": event.max_batches,
            "end_reason": int(event.end_reason) if event.end_reason is not None else 0, "end_code": event.end_code, "text": event.text}


class Replica:
    """`serve` handles every event except JOINED, STEP and END, and returns the answer's fields."""

    def __init__(self, model: Model, inner: Inner, data: DataPosition, island: Island, extra: Extra,
                 evaluate: Optional[Callable[..., Any]]):
        self.model, self.inner, self.data, self.island = model, inner, data, island
        self._extra, self._evaluate_with = extra, evaluate
        self.agreement = Agreement(island)
        self.evaluating = False  # the caller's function runs
        self._actions: Dict[EventKind, Callable[[Dict[str, Any], Optional[Event]], Dict[str, Any]]] = {
            EventKind.READ: self._read, EventKind.WRITE: self._write, EventKind.PARTITION: self._partition,
            EventKind.SEEK: self._seek, EventKind.SAVE: self._save, EventKind.LOAD: self._load, EventKind.EVALUATE: self._evaluate,
        }

    def serve(self, message: Dict[str, Any], event: Optional[Event]) -> Dict[str, Any]:
        """`event` is None on the ranks without the engine."""
        return self._actions[EventKind(message["kind"])](message, event)

    def joined(self, run: Dict[str, Any]) -> None:
        """Learns the run's configuration (Client.run)."""
        self.data.configuration = run.get("config", {})
        self.data.seed = int(self.data.configuration.get("run", {}).get("seed", 0))

    def _read(self, message: Dict[str, Any], event: Optional[Event]) -> Dict[str, Any]:
        self.model.check_unchanged()
        self.agreement.check(self.model)
        for position, tensor in enumerate(message["tensors"]):
            self.model.read(tensor, event.pieces[position].values if event else None)
        return {}

    def _write(self, message: Dict[str, Any], event: Optional[Event]) -> Dict[str, Any]:
        self.model.check_unchanged()
        self.inner.check_copies()
        for position, tensor in enumerate(message["tensors"]):
            self.model.write(tensor, event.pieces[position].values if event else None)
        return {}

    def _partition(self, message: Dict[str, Any], _: Optional[Event]) -> Dict[str, Any]:
        self.data.set_partition(message["partition"], message["partitions"])
        return {}

    def _seek(self, message: Dict[str, Any], _: Optional[Event]) -> Dict[str, Any]:
        mean = message["samples"] // self.island.size
        if self.island.size > 1:
            # A push has the sum only.
            total = self.island.sum([float(self.data.samples)])[0]
            if total == message["samples"]:
                return {}
            unequal = self.island.sum([float(self.data.samples * self.island.size != total)])[0]
            if unequal and self.island.rank == 0:
                warn(f"the ranks have read different numbers of samples, and all of them go on at sample {mean} of their data, the mean: some samples "
                     "are read again, and others not in this pass. Give all ranks batches of one size")
        self.data.seek(mean)
        return {}

    # ---- the state between two lives

    def _save(self, _: Dict[str, Any], event: Optional[Event]) -> Dict[str, Any]:
        own = self._own_state()
        if self.island.rank == 0 or self.inner.sharded:
            own["optimizers"] = self.inner.state()
        if self.island.size == 1:
            ranks: Optional[List[Any]] = [own]
        else:
            ranks = self.island.gather(b"" if self.island.rank == 0 else bytes(state.pack(own)))
        if event is None or ranks is None:
            return {}
        whole = {"version": STATE_VERSION, "kind": self.inner.kind, "steps": self.inner.steps, "ranks": [own, *ranks[1:]]}
        return {"state": state.pack(whole), "state_kind": self.inner.kind, "optimizer_steps": self.inner.steps}

    def _own_state(self) -> Dict[str, Any]:
        return {"random": random_state.capture(), "data": self.data.state(), "extra": self._extra.state()}

    def _load(self, _: Dict[str, Any], event: Optional[Event]) -> Dict[str, Any]:
        """A state that does not fit changes nothing: the worker then starts with a new optimizer."""
        refusal, steps = "", 0
        parts: List[Any] = []
        if event is not None:
            refusal, parts, steps = self._unpacked(event.state)
        if self.island.size > 1:
            refusal, steps, parts = self.island.share((refusal, steps, parts))
        refusal = refusal or self._take_up(parts, steps)
        if not refusal:
            return {}
        if self.island.rank == 0:
            warn(f"the kept state is not used, and the worker starts with a new optimizer: {refusal}")
        return {"outcome": Outcome.FAILED, "message": refusal, "state_kind": self.inner.kind}

    def _unpacked(self, packed: Any) -> Tuple[str, List[Any], int]:
        """(why the state cannot be taken up, the parts of the ranks, steps of the optimizer)."""
        try:
            whole = state.unpack(packed)
            refusal, parts = self._why_not(whole), whole["ranks"]
            if self.island.size > 1 and not refusal:
                shared = b"" if self.inner.sharded else bytes(state.pack(parts[0]["optimizers"]))
                parts = [bytes(state.pack(parts[0])), *parts[1:], shared]
            return refusal, parts, int(whole["steps"])
        except Exception as failure:  # of a damaged file
            return f"it cannot be read: {failure_message(failure)}", [], 0

    def _take_up(self, parts: List[Any], steps: int) -> str:
        """Why the state does not load, on this rank or another; nothing has changed then."""
        restore_point = self._restore_point()
        refusal, changed = "", ""
        try:
            changed = self._load_parts(parts, steps)
        except Exception as failure:  # what load_state_dict of the user's objects raises
            refusal = f"it does not load: {failure_message(failure)}"
        if self.island.sum([float(bool(refusal))])[0]:
            restore_point()
            return refusal or "it does not load on another rank"
        if changed and self.island.rank == 0:
            warn(f"the kept state replaces settings of the optimizer in your code: {changed}. To use those of your code, set them in "
                 "optimizer.param_groups after atoll.join")
        return ""

    def _load_parts(self, parts: List[Any], steps: int) -> str:
        rank = self.island.rank
        own = parts[rank] if rank < len(parts) - (self.island.size > 1) else parts[0]
        if rank > 0 and own is parts[0]:
            warn(f"rank {rank} is not in the kept state, and begins with rank 0's place in the data and its random numbers: if both draw "
                 "samples in the same way, give this rank a seed of its own after atoll.join")
        if isinstance(own, (bytes, bytearray)):
            own = state.unpack(own)
        optimizers = own.get("optimizers")
        if self.island.size > 1 and not self.inner.sharded:
            optimizers = state.unpack(parts[-1])
        changed = self.inner.load(optimizers or [])
        self.inner.steps = steps
        self._extra.load(own["extra"])
        self.data.load(own["data"])
        random_state.restore(own["random"])
        return changed

    def _restore_point(self) -> Callable[[], None]:
        inner, extra = self.inner.restore_point(), self._extra.restore_point()
        place, generators = dict(vars(self.data)), random_state.capture()

        def restore() -> None:
            inner()
            extra()
            vars(self.data).update(place)
            random_state.restore(generators)

        return restore

    def _why_not(self, whole: Dict[str, Any]) -> str:
        """Why a state cannot be taken up; empty when it can."""
        if whole.get("version") != STATE_VERSION:
            return f"the saved state has version {whole.get('version')}, and this package reads version {STATE_VERSION}"
        if self.inner.sharded and len(whole["ranks"]) != self.island.size:
            return f"the saved state is of {len(whole['ranks'])} ranks with a sharded optimizer, and this island has {self.island.size}"
        return self.inner.why_not(whole["kind"], whole["ranks"][0].get("optimizers") or [])

    # ---- evaluation

    def _evaluate(self, message: Dict[str, Any], _: Optional[Event]) -> Dict[str, Any]:
        if self._evaluate_with is None:
            return {"outcome": Outcome.DECLINED, "message": "no evaluation function was given to atoll.join(evaluate=...)"}
        loss, tokens = 0.0, 0
        failure: Optional[Exception] = None
        try:
            loss, tokens = self._evaluated(message["max_batches"])
        except Exception as error:  # the other ranks wait for this one
            failure = error
        weighted, total, failed = self.island.sum([loss * tokens, float(tokens), float(failure is not None)])
        if failure is not None:
            raise failure
        if failed:
            raise FailedPrecondition("the evaluation function failed on another rank of this worker: its own error says why")
        mean = weighted / total
        if not abs(mean) <= LARGEST_LOSS:  # NaN too
            return {"outcome": Outcome.NOT_FINITE, "loss": mean,
                    "message": f"the evaluation function returned {mean}: a loss is a finite number of at most {LARGEST_LOSS:g} in magnitude"}
        return {"loss": mean, "tokens": int(total)}

    def _evaluated(self, max_batches: int) -> Tuple[float, int]:
        """Loss and tokens of the caller's function on this rank. What it changes would look like training."""
        assert self._evaluate_with is not None
        before = self.model.checksums()
        self.evaluating = True
        try:
            with random_state.Preserved(self.data.loader), _EvaluationMode(self.model):
                result = self._evaluate_with(self.model.evaluating(), max_batches)
        finally:
            self.evaluating = False
        numbers = _loss_and_tokens(result)
        changed = [spec.name for spec, old, new in zip(self.model.specs, before, self.model.checksums()) if old != new]
        if changed:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            raise FailedPrecondition(f"the evaluation function changed {changed[0]!r}{more} of the model, and the run would take the change for "
                                     "training: change a copy (copy.deepcopy(model)), or put the values back before the function returns")
        return numbers


class _EvaluationMode:
    """Evaluation mode and no gradients in the block; every module's own mode is restored."""

    def __init__(self, model: Model):
        module = model.evaluating()
        self._modules = list(module.modules()) if hasattr(module, "modules") and hasattr(module, "eval") else []
        self._no_grad: Any = None

    def __enter__(self) -> None:
        self._modes = [module.training for module in self._modules]
        if self._modules:
            import torch
            self._modules[0].eval()
            self._no_grad = torch.no_grad()
            self._no_grad.__enter__()

    def __exit__(self, *_: object) -> None:
        if self._no_grad is not None:
            self._no_grad.__exit__(None, None, None)
        for module, mode in zip(self._modules, self._modes):
            module.training = mode


def _loss_and_tokens(result: Any) -> Tuple[float, int]:
    """What the caller's evaluation function returned. InvalidArgument says what that was."""
    loss, tokens = result if isinstance(result, tuple) and len(result) == 2 else (result, 1)
    try:
        if int(tokens) < 0:
            raise ValueError("the tokens are negative")
        if isinstance(loss, (str, bytes)) or isinstance(tokens, (str, bytes)):
            raise TypeError("a text is no number")
        return float(loss), max(1, int(tokens))
    except (TypeError, ValueError, RuntimeError, OverflowError) as failure:  # RuntimeError: a tensor of several values
        shown = repr(result)
        shown = shown if len(shown) <= SHOWN else shown[:SHOWN] + "..."
        raise InvalidArgument(f"the evaluation function returned {shown}, a {type(result).__name__}: return the mean loss as one number, or "
                              f"the pair (loss, tokens). {type(failure).__name__}: {failure}") from None


def failure_message(failure: BaseException) -> str:
    return str(failure) if isinstance(failure, AtollError) else f"{type(failure).__name__}: {failure}"
