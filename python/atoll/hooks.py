"""Hooks into the user's loop: the optimizer's step, its learning rate, and the values that backward() is called on."""
from __future__ import annotations

import contextlib
import functools
import math
import os
import types
from typing import Any, Callable, ContextManager, Dict, List, Optional

import torch

from .errors import InvalidArgument
from .progress import warn

LARGEST_SQUARES = 1e300  # finite in float64, also as the sum of many ranks


class OptimizerHook:
    """Wraps `step` of one optimizer while a worker is joined. PyTorch 1.13 has no hooks of its own for it.

    `before()` runs with the gradients in place, and says whether the step counts; `after(stepped, norm, loss)` runs after the step, or instead of it when a gradient of
    `parameters` is not finite. `parameters` None: those of the optimizer. A step is taken in `inside`.
    """

    def __init__(self, optimizer: Any, parameters: Optional[List[Any]], before: Callable[[], Any],
                 after: Callable[[bool, float, Any], None], check_finite: bool, total: Callable[[float], float],
                 watch: Optional[LossWatch] = None, inside: Optional[ContextManager[None]] = None):
        self.optimizer = inner_optimizer(optimizer)
        self._outer, self._parameters, self._before, self._after = optimizer, parameters, before, after
        self._check_finite, self._total, self._inside = check_finite, total, inside or contextlib.nullcontext()
        self._line_search = type(self.optimizer).__name__ == "LBFGS"  # it may try points whose gradients are not finite
        self._watch = watch
        self._said = False  # that no parameter had a gradient
        self._restore: List[Callable[[], None]] = []
        self._process = os.getpid()

    def install(self) -> None:
        self._replace(self.optimizer, "step")
        # accelerate with a GradScaler calls a copy of `step` that it made before.
        if hasattr(self._outer, "_optimizer_patched_step_method"):
            self._replace(self._outer, "_optimizer_patched_step_method")

    def remove(self) -> None:
        while self._restore:
            self._restore.pop()()

    def _replace(self, owner: Any, name: str) -> None:
        original = getattr(owner, name)
        had_own = name in vars(owner)

        @functools.wraps(original)
        def step(_: Any, *args: Any, **kwargs: Any) -> Any:
            with self._inside:
                return self._step(original, *args, **kwargs)

        # A bound method, as `step` is: a scheduler that is made now wraps its __func__.
        bound = types.MethodType(step, owner)
        setattr(owner, name, bound)

        def restore() -> None:
            if vars(owner).get(name) is not bound:
                return  # somebody wrapped it again; our wrapper only passes calls on then
            if had_own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)

        self._restore.append(restore)

    def _step(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not self._restore or os.getpid() != self._process:  # a forked child has the hook, and no run
            return original(*args, **kwargs)
        counts = self._before()
        closure = args[0] if args else kwargs.get("closure")
        if closure is not None:
            watched = _Closure(closure, self)
            try:
                result = original(watched, *args[1:], **kwargs) if args else original(**{**kwargs, "closure": watched})
            except _NotFinite:
                self._after(False, math.inf, watched.loss)
                return watched.loss
            self._warn_without_gradients(counts)
            return self._finish(result, watched.norm if watched.evaluations else self._checked_norm(), watched.loss)
        self._warn_without_gradients(counts)
        norm = self._checked_norm()
        if norm is None:
            self._after(False, math.inf, None)
            return None
        return self._finish(original(*args, **kwargs), norm, None)

    def _warn_without_gradients(self, counts: Any) -> None:
        """Once: the step trains nothing."""
        if self._said or not counts or not self._parameters or any(p.grad is not None for p in self._parameters):
            return
        self._said = True
        warn("no parameter had a gradient in this step, so it trained nothing: call loss.backward() before optimizer.step(), and "
             "optimizer.zero_grad() after it", stacklevel=5)

    def _finish(self, result: Any, norm: Optional[float], loss: Any) -> Any:
        found_inf = getattr(self.optimizer, "found_inf", None)  # set by a GradScaler around the steps of fused optimizers
        if found_inf is None or not float(found_inf):
            self._after(norm is not None, math.inf if norm is None else norm, loss)
        return result

    def _checked_norm(self) -> Optional[float]:
        """NaN: not checked. None: not finite."""
        return self._gradient_norm() if self._check_finite and not self._line_search else math.nan

    def versions(self) -> List[int]:
        """Another list after any change of the optimizer's parameters in place."""
        return [p._version for group in self.optimizer.param_groups for p in group["params"]]

    @torch.no_grad()
    def _gradient_norm(self) -> Optional[float]:
        """The global L2 norm; None when it is not finite. A fused optimizer under a GradScaler has scaled gradients."""
        parameters = self._parameters
        if parameters is None:
            parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        gradients = [p.grad.detach() for p in parameters if p.grad is not None]
        local = [getattr(g, "to_local", lambda g=g: g)() for g in gradients]
        local = [g.coalesce().values() if g.is_sparse else g for g in local]
        total = self._total(_square_sum(local) if local else 0.0)
        if getattr(self.optimizer, "found_inf", None) is not None:
            scale = getattr(self.optimizer, "grad_scale", None)
            return math.sqrt(total) / float(scale) if scale is not None and math.isfinite(total) else math.nan
        return math.sqrt(total) if math.isfinite(total) else None


class _NotFinite(Exception):
    """Ends the step of an optimizer before it uses gradients that are not finite."""


class _Closure:
    """The user's closure, as an optimizer gets it.

    An optimizer may evaluate it at other points than the model's (LBFGS, sharpness-aware minimisation). The losses there are none of the
    model, and are not counted.
    """

    def __init__(self, closure: Callable[[], Any], hook: OptimizerHook):
        self._closure, self._hook, self._versions = closure, hook, hook.versions()
        self.evaluations = 0
        self.loss: Any = None  # at the model's point; None: the LossWatch knows it, or it was evaluated elsewhere only
        self.norm: Optional[float] = math.nan

    def __call__(self) -> Any:
        watch = self._hook._watch
        elsewhere = self.evaluations > 0 or self._hook.versions() != self._versions
        seen = watch.count() if watch is not None else 0
        with torch.enable_grad():
            value = self._closure()
        self.evaluations += 1
        if elsewhere and watch is not None:
            watch.forget(seen)
        if not elsewhere and (watch is None or watch.count() == seen):
            self.loss = value
        self.norm = self._hook._checked_norm()
        if self.norm is None:
            raise _NotFinite
        return value


def _square_sum(tensors: List[torch.Tensor]) -> float:
    """The sum of all squares. It is finite if and only if all values are."""
    if hasattr(torch, "_foreach_norm") and len({t.device for t in tensors}) == 1:
        norms = torch._foreach_norm(tensors)
    else:
        norms = [torch.linalg.vector_norm(t) for t in tensors]
    total = float(_sum_of_squares(norms))
    if math.isfinite(total):
        return total
    # A norm overflows in the type of its gradients sooner than they do: float16 ends at 65504, the squares of float32 at 3e38.
    if not all(bool(torch.isfinite(t).all()) for t in tensors):
        return math.inf
    return min(float(_sum_of_squares([torch.linalg.vector_norm(t.to(torch.float64)) for t in tensors])), LARGEST_SQUARES)


def _sum_of_squares(norms: List[torch.Tensor]) -> torch.Tensor:
    return torch.stack([n.to(device=norms[0].device, dtype=torch.float64) for n in norms]).square().sum()


class LearningRate:
    """Sets the run's learning rate on all parameter groups, each in the proportion that it had when the worker joined."""

    def __init__(self, optimizer: Any):
        self._optimizer = optimizer
        rates = _base_rates(optimizer)
        largest = max(rates)
        if largest <= 0 and len(rates) > 1:
            warn(f"the {len(rates)} parameter groups of the optimizer all have the learning rate 0, so their proportions are not known, and "
                 "each gets the run's rate. Give the groups their rates before atoll.join, or use learning_rate='mine'", stacklevel=5)
        self._largest = largest
        self._ratios = [rate / largest if largest > 0 else 1.0 for rate in rates]

    def set(self, rate: float) -> None:
        for group in self._optimizer.param_groups[len(self._ratios):]:  # added after the join, with a rate of its own
            self._ratios.append(_own_rate(group, "initial_lr") / self._largest if self._largest > 0 else 1.0)
        for group, ratio in zip(self._optimizer.param_groups, self._ratios):
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate * ratio)
            else:
                group["lr"] = rate * ratio


def _base_rates(optimizer: Any) -> List[float]:
    """The groups' rates without what a scheduler makes of them: a warm-up has set `lr` to 0 before the first step."""
    rates = [_own_rate(group, "initial_lr") for group in optimizer.param_groups]
    return rates if max(rates) > 0 else [_own_rate(group, "lr") for group in optimizer.param_groups]


def _own_rate(group: Dict[str, Any], key: str) -> float:
    rate = group.get(key, group.get("lr"))
    if rate is None:
        raise InvalidArgument("a parameter group of the optimizer has no learning rate (lr), so the run cannot set it: give the optimizer "
                              "one, or use learning_rate='mine'")
    return float(rate)


class LossWatch:
    """The sum of the values that backward() was called on since take(): what an optimizer step minimises.

    While one worker of the process watches, torch.autograd.backward is wrapped. With two, the values cannot be told
    apart, and take() gives NaN. A step that a GradScaler skipped drops its values, and calls `skipped`.
    """

    _watching: List["LossWatch"] = []
    _originals: Dict[str, Any] = {}

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self.skipped: Callable[[], None] = lambda: None
        self._stepped = False
        self._values: List[torch.Tensor] = []
        self._scaled: Dict[int, torch.Tensor] = {}
        self._process = os.getpid()

    def install(self) -> None:
        if not LossWatch._watching:
            LossWatch._wrap()
        LossWatch._watching.append(self)

    def remove(self) -> None:
        if self in LossWatch._watching:
            LossWatch._watching.remove(self)
            if not LossWatch._watching:
                LossWatch._unwrap()

    def take(self) -> float:
        values, self._values, self._scaled, self._stepped = self._values, [], {}, False
        if not values or len(LossWatch._of_this_process()) > 1:
            return math.nan
        return float(sum(float(value) for value in values))

    def count(self) -> int:
        return len(self._values)

    @classmethod
    def _of_this_process(cls) -> List["LossWatch"]:
        """Without those of the parent, which a forked child has too."""
        return [watch for watch in cls._watching if watch._process == os.getpid()]

    def forget(self, count: int) -> None:
        """Drops the values after the first `count`."""
        del self._values[count:]

    def step_taken(self) -> None:
        """The optimizer has stepped on the values seen so far."""
        self._stepped = True

    def _see_scaler_step(self, optimizer: Any) -> None:
        if optimizer is self._optimizer and not self._stepped:
            self._values, self._scaled = [], {}
            self.skipped()

    def _see_backward(self, tensors: Any) -> None:
        for tensor in [tensors] if isinstance(tensors, torch.Tensor) else tensors:
            if isinstance(tensor, torch.Tensor) and tensor.numel() == 1:
                self._values.append(self._scaled.pop(id(tensor), tensor).detach())

    def _see_scale(self, outputs: Any, scaled: Any) -> None:
        if isinstance(outputs, torch.Tensor) and isinstance(scaled, torch.Tensor):
            self._scaled[id(scaled)] = outputs

    @classmethod
    def _wrap(cls) -> None:
        original = cls._originals["backward"] = torch.autograd.backward

        @functools.wraps(original)
        def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            for watch in cls._of_this_process():
                watch._see_backward(tensors)
            return original(tensors, *args, **kwargs)

        torch.autograd.backward = backward
        scaler: Any = torch.cuda.amp.GradScaler
        for base in scaler.__mro__:  # where `scale` is defined: newer versions share it with torch.amp.GradScaler
            if "scale" in vars(base):
                scaler = base
                break
        scale, step = vars(scaler)["scale"], vars(scaler)["step"]
        cls._originals["scaler"] = (scaler, scale, step)

        @functools.wraps(scale)
        def watched_scale(self: Any, outputs: Any) -> Any:
            scaled = scale(self, outputs)
            for watch in cls._of_this_process():
                watch._see_scale(outputs, scaled)
            return scaled

        @functools.wraps(step)
        def watched_step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            result = step(self, optimizer, *args, **kwargs)
            for watch in cls._of_this_process():
                watch._see_scaler_step(optimizer)
            return result

        scaler.scale, scaler.step = watched_scale, watched_step

    @classmethod
    def _unwrap(cls) -> None:
        torch.autograd.backward = cls._originals.pop("backward")
        scaler, scaler.scale, scaler.step = cls._originals.pop("scaler")


def inner_optimizer(optimizer: Any) -> Any:
    """The PyTorch optimizer under the wrappers of accelerate and Lightning."""
    while not isinstance(optimizer, torch.optim.Optimizer) or type(optimizer).__name__ == "AcceleratedOptimizer":
        inner = getattr(optimizer, "optimizer", None)
        if inner is None or inner is optimizer:
            raise InvalidArgument(f"the optimizer is a {type(optimizer).__name__}: give a torch.optim.Optimizer, or a list of them")
        optimizer = inner
    return optimizer
