"""PyTorch optimizers as the inner optimizer of a worker."""
from __future__ import annotations

import hashlib
import json
import math
from typing import Any, Callable, Dict, List, Optional, Sequence

import torch

from .errors import InvalidArgument
from .foreign_steps import ForeignSteps
from .hooks import LearningRate, LossWatch, OptimizerHook, inner_optimizer
from .inner import Inner
from .progress import warn
from .ranks import plain
from .state import check, nested_too_deeply
from .torch_state import changed_settings, groups_differ, shapes_differ


class TorchInner(Inner):
    """One or several optimizers. The steps of one of them count; the states of all are kept."""

    hooked = True

    def __init__(self, optimizers: Any, counts: Any, parameters: List[Any], learning_rate: str, check_finite: bool, watch_loss: bool):
        super().__init__()
        given = list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]
        if not given:
            raise InvalidArgument("the list of optimizers is empty: give at least one, or None for a loop that calls run.step")
        self._optimizers = [inner_optimizer(optimizer) for optimizer in given]
        self._counted = self._choose(given, counts)
        self._counted_inner = inner_optimizer(self._counted)
        self._others = [optimizer for optimizer, inner in zip(given, self._optimizers) if inner is not self._counted_inner]
        if learning_rate not in ("run", "mine"):
            raise InvalidArgument(f"learning_rate is {learning_rate!r}: use 'run' for the run's schedule, or 'mine' for your own")
        self._rate = LearningRate(self._counted_inner) if learning_rate == "run" else None
        self._parameters, self._check_finite = parameters, check_finite
        self._check_trains_the_model()
        self._watch = LossWatch(self._counted_inner) if watch_loss else None
        self._hooks: List[OptimizerHook] = []
        self._foreign: Optional[ForeignSteps] = None
        self._marked: List[int] = []
        self._other_skipped = False  # a step of another optimizer, since the last counted step
        self._copies_checked = False
        self._refused = False  # the counted step that is to be answered was not finite
        self.sharded = any(hasattr(parameter, "full_tensor") for parameter in parameters)
        self._check_can_be_kept()

    def _check_trains_the_model(self) -> None:
        """An optimizer may have a part of the parameters, and others besides. With none of them, the model would never change."""
        trained = {id(parameter) for parameter in self._parameters}
        if not trained or any(id(p) in trained for optimizer in self._optimizers for group in optimizer.param_groups for p in group["params"]):
            return
        kinds = ", ".join(type(optimizer).__name__ for optimizer in self._optimizers)
        raise InvalidArgument(f"the optimizer ({kinds}) has none of the {len(trained)} parameters that the model trains, so its steps would not "
                              "change the model. Make it from model.parameters() of the model that you give to atoll.join, and after what replaces "
                              "parameters, such as fully_shard. An optimizer over copies of the parameters does not work")

    def _check_can_be_kept(self) -> None:
        """The state is first written after a round, which is late for an error."""
        for place, optimizer in enumerate(self._optimizers):
            path = f"optimizer{f'[{place}]' if len(self._optimizers) > 1 else ''}.state_dict()"
            try:
                kept = _local(optimizer.state_dict())
            except RecursionError:
                raise nested_too_deeply(path) from None
            check(kept, path)

    def _choose(self, given: Sequence[Any], counts: Any) -> Any:
        if counts is None:
            if len(given) > 1:
                raise InvalidArgument(f"there are {len(given)} optimizers: say whose steps count with counts=: the "
                                      "optimizer itself in atoll.join, its index in the callback of Lightning")
            return given[0]
        for optimizer in given:
            if optimizer is counts:
                return optimizer
        raise InvalidArgument("counts is none of the optimizers that were given: pass the same object in both places")

    @property
    def kind(self) -> str:
        # The values that get a state, and their order: the state of another model, or of another optimizer, does not fit.
        return f"{self._kind_without_layout}, groups: {sum(len(o.param_groups) for o in self._optimizers)}, layout {self._layout()}"

    @property
    def _kind_without_layout(self) -> str:
        """What older packages wrote."""
        values = sum(p.numel() for o in self._optimizers for group in o.param_groups for p in group["params"])
        names = "+".join(type(optimizer).__name__ for optimizer in self._optimizers)
        return f"torch {names} over {values} values"

    def _layout(self) -> str:
        """A short hash of each group's parameters: their shapes, and their places in the model."""
        places = {id(parameter): place for place, parameter in enumerate(self._parameters)}
        layout = [[[(places.get(id(p), -1), *p.shape) for p in group["params"]] for group in o.param_groups] for o in self._optimizers]
        return hashlib.sha256(json.dumps(layout).encode()).hexdigest()[:12]

    def install(self, before: Callable[[], Any], after: Callable[[bool, float, Any], None], skipped: Callable[[], None],
                total: Callable[[float], float], foreign: Callable[[Any], None]) -> None:
        def stepped(finite: bool, norm: float, loss: Any) -> None:
            if self._watch is not None:
                self._watch.step_taken()
            finite = finite and not self._other_skipped
            self._other_skipped, self._refused = False, not finite
            after(finite, norm if finite else math.inf, loss)

        def other_stepped(finite: bool, _: float, __: Any) -> None:
            # After a refused step of the counted one its round is dropped anyway, and the next round begins clean.
            self._other_skipped = self._other_skipped or not (finite or self._refused)

        # All ranks decide alike, before any of them steps.
        total_of_ranks = total if self.sharded else lambda value: value if math.isfinite(total(value)) else math.inf
        known = [*self._optimizers, self._counted, *self._others]
        self._foreign = inside = ForeignSteps(self._counted_inner, known, self._parameters, foreign)
        self._hooks = [OptimizerHook(self._counted, self._parameters, before, stepped, self._check_finite, total_of_ranks, self._watch, inside)]
        if self._check_finite:
            self._hooks += [OptimizerHook(other, None, lambda: None, other_stepped, True, total_of_ranks, None, inside) for other in self._others]
        for hook in self._hooks:
            hook.install()
        self._foreign.install()
        if self._watch is not None:
            self._watch.skipped = skipped
            self._watch.install()

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        if self._foreign is not None:
            self._foreign.remove()
        if self._watch is not None:
            self._watch.remove()

    def settings(self) -> List[Dict[str, str]]:
        return [{"class": type(optimizer).__name__,
                 **{f"{name} in group {place}": plain(value) for place, group in enumerate(optimizer.param_groups)
                    for name, value in group.items() if name not in ("params", "param_names")}} for optimizer in self._optimizers]

    def held(self) -> List[Any]:
        return list(self._optimizers)

    def own_learning_rate(self) -> Optional[float]:
        return float(self._counted_inner.param_groups[0]["lr"]) if self._rate is None else None

    def set_learning_rate(self, rate: float) -> None:
        if self._rate is not None:
            self._rate.set(rate)

    def mark(self) -> None:
        self._marked = self._hooks[0].versions()

    def changed_since_mark(self) -> bool:
        return self._hooks[0].versions() != self._marked

    def check_copies(self) -> None:
        if self._copies_checked or not self.steps:
            return
        self._copies_checked = True
        for optimizer in self._optimizers:
            key = _copy_in(optimizer)
            if key is not None:
                warn(f"the state {key!r} of the optimizer ({type(optimizer).__name__}) equals the parameters. If the optimizer writes it back into "
                     "them, the published values are lost, and every worker trains on its own: set this state to the parameters after each "
                     "change of run.version, or use an optimizer without such a copy", stacklevel=2)

    def take_loss(self) -> float:
        self._refused = False
        return self._watch.take() if self._watch is not None else float("nan")

    def state(self) -> List[Any]:
        return [_local(optimizer.state_dict()) for optimizer in self._optimizers]

    def why_not(self, kind: str, states: List[Any]) -> str:
        if kind not in (self.kind, self._kind_without_layout):
            why = f"the saved state is of {_shown(kind)}, and this worker has {_shown(self.kind)}: "
            if not kind.startswith(f"{self._kind_without_layout}, "):
                return why + "the program has another optimizer or other parameters than the one that saved the state"
            return f"{why}groups, shapes or order of the parameters differ"
        if len(states) != len(self._optimizers):
            return f"the saved state has {len(states)} optimizers, and this worker has {len(self._optimizers)}"
        for optimizer, state in zip(self._optimizers, states):
            why = groups_differ(optimizer, state) or (shapes_differ(optimizer, state) if kind != self.kind else "")
            if why:
                return why
        return ""

    def load(self, states: List[Any]) -> str:
        before = [[dict(group) for group in optimizer.param_groups] for optimizer in self._optimizers]
        for optimizer, state in zip(self._optimizers, states):
            optimizer.load_state_dict(_sharded(state, optimizer) if self.sharded else state)
        return ", ".join(text for optimizer, groups in zip(self._optimizers, before) for text in changed_settings(optimizer, groups))

    def restore_point(self) -> Callable[[], None]:
        restore_steps = super().restore_point()
        kept = [(optimizer, optimizer.state, optimizer.param_groups) for optimizer in self._optimizers]

        def restore() -> None:
            restore_steps()
            for optimizer, state, groups in kept:  # load_state_dict replaces both
                optimizer.state, optimizer.param_groups = state, groups

        return restore


@torch.no_grad()
def _copy_in(optimizer: Any) -> Optional[str]:
    """The key of a state that holds a copy of a parameter. PyTorch's own optimizers write none back (ASGD keeps one)."""
    if type(optimizer).__module__.startswith("torch."):
        return None
    for parameter, values in optimizer.state.items():
        for key, value in values.items() if isinstance(values, dict) and hasattr(parameter, "data_ptr") else ():
            if not isinstance(value, torch.Tensor) or value.shape != parameter.shape or value.numel() < 2 or not value.is_floating_point():
                continue
            # Values that are all equal, such as those of a norm at its start, prove nothing.
            if torch.equal(value.to(parameter.dtype), parameter) and not bool((parameter == parameter.flatten()[0]).all()):
                return str(key)
    return None


def _shown(kind: str) -> str:
    """A kind for people, such as SGD over 49 values, groups: 1."""
    return kind.partition(", layout ")[0].replace("torch ", "", 1)


def _local(value: Any) -> Any:
    """The state with this rank's part of every sharded tensor."""
    if isinstance(value, dict):
        return {key: _local(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_local(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value.to_local() if hasattr(value, "to_local") else value


def _sharded(state: Dict[str, Any], optimizer: Any) -> Dict[str, Any]:
    """The opposite of _local: each tensor is laid out as its parameter is."""
    from torch.distributed.tensor import DTensor
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    indices = [index for group in state["param_groups"] for index in group["params"]]
    by_index: Dict[Any, Any] = dict(zip(indices, parameters))

    def laid_out(index: Any, value: Any) -> Any:
        parameter: Any = by_index.get(index)
        if not hasattr(parameter, "to_local") or not hasattr(value, "shape") or value.shape != parameter.to_local().shape:
            return value
        return DTensor.from_local(value.to(parameter.device), parameter.device_mesh, parameter.placements, shape=parameter.shape,
                                  stride=parameter.stride())

    kept = {index: {key: laid_out(index, value) for key, value in values.items()} for index, values in state["state"].items()}
    return {**state, "state": kept}
