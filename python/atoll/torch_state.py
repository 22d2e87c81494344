"""A saved state of a PyTorch optimizer, compared with the optimizer that is to take it up."""
from __future__ import annotations

from typing import Any, Dict, Iterator, List

# What PyTorch's optimizers keep for each parameter, in the parameter's shape.
_LIKE_THE_PARAMETER = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "exp_inf", "momentum_buffer", "sum", "square_avg", "grad_avg",
                       "acc_delta", "prev", "step_size", "ax")


def groups_differ(optimizer: Any, state: Dict[str, Any]) -> str:
    """How the parameter groups differ; empty when they are alike."""
    saved = [len(group["params"]) for group in state["param_groups"]]
    own = [len(group["params"]) for group in optimizer.param_groups]
    if saved == own:
        return ""
    return f"the saved state of {type(optimizer).__name__} has groups of {saved} parameters, and this worker has groups of {own}"


def shapes_differ(optimizer: Any, state: Dict[str, Any]) -> str:
    """Which tensor has another shape than its parameter; empty when none has.

    For states whose kind does not say the shapes. Optimizers of other packages may keep any shape under these names.
    """
    if not type(optimizer).__module__.startswith("torch.optim"):
        return ""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    indices = [index for group in state["param_groups"] for index in group["params"]]
    for place, (index, parameter) in enumerate(zip(indices, parameters)):
        own = list((parameter.to_local() if hasattr(parameter, "to_local") else parameter).shape)
        for name in _LIKE_THE_PARAMETER:
            value = state["state"].get(index, {}).get(name)
            if hasattr(value, "shape") and list(value.shape) != own:
                return (f"{name} of parameter {place} of {type(optimizer).__name__} has the shape {list(value.shape)} in the saved state, and "
                        f"this worker's parameter has {own}")
    return ""


def changed_settings(optimizer: Any, before: List[Dict[str, Any]]) -> Iterator[str]:
    """Each setting that now differs from `before`, the groups as the code made them. Rates change in every run, and OneCycleLR
    moves the momentum too."""
    said = set()
    for old, new in zip(before, optimizer.param_groups):
        moving = ("lr", "momentum", "betas") if "base_momentum" in new else ("lr",)
        for name in optimizer.defaults:
            if name not in moving and name in old and name in new and not _equal(old[name], new[name]):
                text = f"{name} {new[name]} instead of {old[name]}"
                if text not in said:
                    said.add(text)
                    yield text


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(_equal(a, b) for a, b in zip(one, other))
    try:
        return bool(one == other)
    except (RuntimeError, ValueError):  # tensors of several values
        return False
