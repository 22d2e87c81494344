"""The inner optimizer as a worker sees it: a learning rate to set, steps to count, a state to keep."""
from __future__ import annotations

import functools
import sys
import types
import weakref
from typing import Any, Callable, Dict, List, Optional

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

    def install(self, before: Callable[[], None], after: Callable[[bool, float, Any], None], skipped: Callable[[], None],
                total: Callable[[float], float]) -> None:
        """Calls `before` and `after` around every step from now on, and `skipped` after one that a GradScaler skipped."""

    def remove(self) -> None:
        """Leaves the optimizer as it was."""

    def set_learning_rate(self, rate: float) -> None:
        """For the next step."""

    def take_loss(self) -> float:
        """The loss of the steps since the last call, as far as it was seen; NaN otherwise."""
        return float("nan")

    def state(self) -> List[Any]:
        return []

    def load(self, states: List[Any]) -> None:
        if states:
            raise InvalidArgument("the saved state has an optimizer, and this worker has none")


class Extra:
    """Objects with state_dict and load_state_dict that are kept with the worker's state, such as a scheduler.

    The states of PyTorch's schedulers may have functions and methods of theirs. Those are left out: the scheduler of the next life
    has its own. Any other value that cannot be kept is an error here.
    """

    def __init__(self, objects: Optional[Dict[str, Any]]):
        self._objects = dict(objects or {})
        for name, value in self._objects.items():
            if not hasattr(value, "state_dict") or not hasattr(value, "load_state_dict"):
                raise InvalidArgument(f"also_save[{name!r}] has no state_dict and load_state_dict: give an object that has both")
        for name, kept in self.state().items():
            state.check(kept, f"also_save[{name!r}].state_dict()")

    def state(self) -> Dict[str, Any]:
        return {name: _without_functions(value.state_dict()) if _is_scheduler(value) else value.state_dict()
                for name, value in self._objects.items()}

    def load(self, states: Dict[str, Any]) -> None:
        for name, value in self._objects.items():
            if name in states:
                value.load_state_dict(states[name])


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
