"""The inner optimizer as a worker sees it: a learning rate to set, steps to count, a state to keep."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from .errors import InvalidArgument


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
    """Objects with state_dict and load_state_dict that are kept with the worker's state, such as a scheduler."""

    def __init__(self, objects: Optional[Dict[str, Any]]):
        self._objects = dict(objects or {})
        for name, value in self._objects.items():
            if not hasattr(value, "state_dict") or not hasattr(value, "load_state_dict"):
                raise InvalidArgument(f"also_save[{name!r}] has no state_dict and load_state_dict: give an object that has both")

    def state(self) -> Dict[str, Any]:
        return {name: value.state_dict() for name, value in self._objects.items()}

    def load(self, states: Dict[str, Any]) -> None:
        for name, value in self._objects.items():
            if name in states:
                value.load_state_dict(states[name])
