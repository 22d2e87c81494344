"""Steps of an optimizer that the run does not know, on the parameters of the one that it counts."""
from __future__ import annotations

import functools
import importlib
import os
from typing import Any, Callable, Dict, List, Tuple

import torch


class ForeignSteps:
    """Calls `seen(optimizer)` after a step of any PyTorch optimizer that is not in `known` and has a gradient of a parameter of `counted`.

    A step around a step that counts, and one inside of it, belong to that one: wrappers such as Lookahead have an optimizer of their own.
    """

    _watching: List["ForeignSteps"] = []
    _undo: List[Callable[[], None]] = []

    def __init__(self, counted: Any, known: List[Any], parameters: List[Any], seen: Callable[[Any], None]):
        trained = {id(parameter) for parameter in parameters}
        self._own = {id(p) for group in counted.param_groups for p in group["params"] if not trained or id(p) in trained}
        self._known, self._seen, self._process = {id(optimizer) for optimizer in known}, seen, os.getpid()
        self._inside = 0   # of steps that count
        self._counted = 0  # steps that have begun
        self._open: Dict[int, Tuple[int, int]] = {}  # optimizer: how deep its step is nested, and _counted when it began

    def install(self) -> None:
        if not ForeignSteps._watching:
            ForeignSteps._undo = _around_all_steps(_before, _after)
        ForeignSteps._watching.append(self)

    def remove(self) -> None:
        if self in ForeignSteps._watching:
            ForeignSteps._watching.remove(self)
        if not ForeignSteps._watching:
            while ForeignSteps._undo:
                ForeignSteps._undo.pop()()

    def __enter__(self) -> None:
        """A step that counts begins."""
        self._inside += 1
        self._counted += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1

    def _begin(self, optimizer: Any) -> None:
        depth, counted = self._open.get(id(optimizer), (0, self._counted))
        self._open[id(optimizer)] = depth + 1, counted

    def _end(self, optimizer: Any) -> None:
        depth, counted = self._open.pop(id(optimizer), (1, self._counted))
        if depth > 1:  # a class whose step calls that of its base class
            self._open[id(optimizer)] = depth - 1, counted
        elif not self._inside and counted == self._counted and id(optimizer) not in self._known and self._trained_by(optimizer):
            self._seen(optimizer)

    def _trained_by(self, optimizer: Any) -> bool:
        return any(id(p) in self._own and p.grad is not None for group in optimizer.param_groups for p in group["params"])


def _before(optimizer: Any, *_: Any) -> None:
    for watch in ForeignSteps._watching:
        if watch._process == os.getpid():
            watch._begin(optimizer)


def _after(optimizer: Any, *_: Any) -> None:
    for watch in list(ForeignSteps._watching):
        if watch._process == os.getpid():
            watch._end(optimizer)


def _around_all_steps(before: Callable[..., None], after: Callable[..., None]) -> List[Callable[[], None]]:
    """Calls both around every step of every optimizer. Returns what undoes it."""
    module: Any = importlib.import_module("torch.optim.optimizer")
    if hasattr(module, "register_optimizer_step_post_hook"):
        return [module.register_optimizer_step_pre_hook(before).remove, module.register_optimizer_step_post_hook(after).remove]
    return [_wrapped(kind, before, after) for kind in _kinds(torch.optim.Optimizer) if "step" in vars(kind)]  # PyTorch 1.13


def _kinds(base: Any) -> List[Any]:
    return [kind for below in base.__subclasses__() for kind in (below, *_kinds(below))]


def _wrapped(kind: Any, before: Callable[..., None], after: Callable[..., None]) -> Callable[[], None]:
    original = kind.step

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        before(self)
        result = original(self, *args, **kwargs)
        after(self)
        return result

    kind.step = step

    def restore() -> None:
        if kind.step is step:
            kind.step = original

    return restore
