"""The inner optimizer as a worker sees it: a learning rate to set, steps to count, a state to keep."""
from __future__ import annotations

import functools
import sys
import types
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional

from . import state
from .errors import InvalidArgument

FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial, weakref.WeakMethod)


class Inner:
    """Without an optimizer that Atoll knows: the loop calls Run.step after each step of its own."""

    hooked = False
    sharded = False

    def __init__(self) -> None:
        self.steps = 0

    @property
    def kind(self) -> str:
        return "steps of the caller's loop"

    def install(self, before: Callable[[], Any], after: Callable[[bool, float, Any], None], skipped: Callable[[], None],
                total: Callable[[float], float], foreign: Callable[[Any], None]) -> None:
        """Calls `before` and `after` around every step from now on, and `skipped` after one that a GradScaler skipped.

        `foreign` is called after a step of another optimizer on the same parameters.
        """

    def remove(self) -> None:
        """Leaves the optimizer as it was."""

    def settings(self) -> List[Dict[str, str]]:
        """Of each optimizer, its class and the settings of its groups."""
        return []

    def held(self) -> List[Any]:
        """The optimizers of the caller."""
        return []

    def own_learning_rate(self) -> Optional[float]:
        """Where the caller sets the rate: that of the first group. None: the run sets it."""
        return None

    def set_learning_rate(self, rate: float) -> None:
        """For the next step."""

    def mark(self) -> None:
        """A step is due."""

    def changed_since_mark(self) -> bool:
        """Whether parameters of the counted optimizer were written to since mark()."""
        return False

    def check_copies(self) -> None:
        """Called before published values are written into the model: warns of an optimizer that may replace them by its own."""

    def take_loss(self) -> float:
        """The loss of the steps since the last call, as far as it was seen; NaN otherwise."""
        return float("nan")

    def state(self) -> List[Any]:
        return []

    def why_not(self, kind: str, states: List[Any]) -> str:
        """Why states that a worker with `kind` has kept do not fit; empty when they do. Changes nothing."""
        if kind != self.kind:
            return f"the saved state is of '{kind}', and this worker has '{self.kind}'"
        return ""

    def load(self, states: List[Any]) -> str:
        """Takes the states up. Returns what they change in the code's settings, in words; empty: nothing."""
        if states:
            raise InvalidArgument("the saved state has an optimizer, and this worker has none")
        return ""

    def restore_point(self) -> Callable[[], None]:
        """A function that brings back the optimizer as it is now."""
        steps = self.steps

        def restore() -> None:
            self.steps = steps

        return restore


_CLASSES = "\0classes"  # in the state of Extra, beside the names of the user


def _class_of(value: Any) -> str:
    return type(value).__qualname__


class Extra:
    """Objects with state_dict and load_state_dict that are kept with the worker's state, such as a scheduler.

    The states of PyTorch's schedulers may have functions and methods of theirs. Those are left out: the scheduler of the next life
    has its own. Any other value that cannot be kept is an error here.
    """

    def __init__(self, objects: Optional[Dict[str, Any]]):
        if objects is not None and not isinstance(objects, Mapping):
            raise InvalidArgument(f"also_save is a {type(objects).__name__}: give a dict of names and objects, such as "
                                  "also_save={'scheduler': scheduler}")
        self._objects = dict(objects or {})
        for name, value in self._objects.items():
            if not hasattr(value, "state_dict") or not hasattr(value, "load_state_dict"):
                raise InvalidArgument(f"also_save[{name!r}] has no state_dict and load_state_dict: give an object that has both")
        for name, value in self._objects.items():
            path = f"also_save[{name!r}].state_dict()"
            try:
                kept = _kept(value)
            except RecursionError:
                raise state.nested_too_deeply(path) from None
            state.check(kept, path)

    def state(self) -> Dict[str, Any]:
        kept = {name: _kept(value) for name, value in self._objects.items()}
        if kept:
            kept[_CLASSES] = {name: _class_of(value) for name, value in self._objects.items()}
        return kept

    def load(self, states: Dict[str, Any]) -> None:
        classes = states.get(_CLASSES, {})  # not in states of version 0.2.0
        for name, value in self._objects.items():
            if classes.get(name, _class_of(value)) != _class_of(value):
                raise InvalidArgument(f"also_save[{name!r}] is a {_class_of(value)}, and the saved state is of a {classes[name]}: give it "
                                      "another name to begin without the saved state")
        for name, value in self._objects.items():
            if name in states:
                value.load_state_dict(states[name])

    def restore_point(self) -> Callable[[], None]:
        """A function that brings back the objects as they are now. It has copies: load_state_dict of a module writes in place."""
        packed = state.pack(self.state()) if self._objects else None

        def restore() -> None:
            if packed is not None:
                self.load(state.unpack(packed))

        return restore


def _kept(value: Any) -> Any:
    return _without_functions(value.state_dict()) if _is_scheduler(value) else value.state_dict()


def _is_scheduler(value: Any) -> bool:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return False
    schedulers = torch.optim.lr_scheduler
    bases = tuple(getattr(schedulers, name) for name in ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau") if hasattr(schedulers, name))
    return isinstance(value, bases) or isinstance(getattr(value, "scheduler", None), bases)  # accelerate wraps it


def _without_functions(value: Any) -> Any:
    """Without the entries of dicts that are functions or methods."""
    if isinstance(value, dict):
        return {key: _without_functions(item) for key, item in value.items() if not isinstance(item, FUNCTIONS)}
    if type(value) in (list, tuple):
        return type(value)(_without_functions(item) for item in value)
    return value
