"""The states of the random generators that a loop draws from: Python's, NumPy's and PyTorch's, where they are loaded."""
from __future__ import annotations

import random
import sys
from typing import Any, Dict, List

from .progress import warn


def capture(devices: bool = True) -> Dict[str, Any]:
    """Plain values and tensors. `devices`: the generators of CUDA devices too, if CUDA is in use."""
    version, words, gauss = random.getstate()
    found: Dict[str, Any] = {"python": [version, b"".join(word.to_bytes(4, "little") for word in words), gauss]}
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        found["numpy"] = _numpy_state(numpy)
    if torch is not None:
        found["torch"] = torch.get_rng_state()
        if devices and torch.cuda.is_available() and torch.cuda.is_initialized():
            found["cuda"] = list(torch.cuda.get_rng_state_all())
    return found


def restore(state: Dict[str, Any]) -> None:
    """What capture() returned. Generators that are not loaded, and devices that are gone, are left out."""
    if "python" in state:
        version, packed, gauss = state["python"]
        words = tuple(int.from_bytes(packed[i:i + 4], "little") for i in range(0, len(packed), 4))
        random.setstate((version, words, gauss))
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and "numpy" in state:
        _set_numpy_state(numpy, state["numpy"])
    if torch is not None and "torch" in state:
        torch.set_rng_state(state["torch"])
        if "cuda" in state and torch.cuda.is_available() and torch.cuda.device_count() == len(state["cuda"]):
            torch.cuda.set_rng_state_all(state["cuda"])


def _numpy_state(numpy: Any) -> Any:
    """A list for MT19937, which older releases read too; for a generator of set_bit_generator, its dict."""
    state = numpy.random.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        return state
    return ["MT19937", state["state"]["key"], state["state"]["pos"], state["has_gauss"], state["gauss"]]


def _set_numpy_state(numpy: Any, state: Any) -> None:
    kept = state["bit_generator"] if isinstance(state, dict) else state[0]
    own = numpy.random.get_state(legacy=False)["bit_generator"]
    if kept == own:
        numpy.random.set_state(state if isinstance(state, dict) else tuple(state))
    else:
        warn(f"the state of numpy.random is that of {kept}, and the program has set {own}: its random numbers begin as the program has seeded them. "
             "Set the same bit generator in every start of the program", stacklevel=2)


def generators_of(loader: Any) -> List[Any]:
    """The torch.Generators that a DataLoader and its samplers draw from, each once."""
    loader = innermost(loader)
    batch_sampler = getattr(loader, "batch_sampler", None)
    owners = (loader, getattr(loader, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None))
    found: List[Any] = []
    for owner in owners:
        generator = getattr(owner, "generator", None)
        if hasattr(generator, "get_state") and not any(generator is one for one in found):
            found.append(generator)
    return found


def innermost(loader: Any) -> Any:
    """The loader inside of wrappers: what tqdm's keep as `iterable`, and the one torch DataLoader among the attributes of others."""
    from .following import Original
    torch = sys.modules.get("torch")
    kind: Any = torch.utils.data.DataLoader if torch is not None else ()
    for _ in range(10):
        if isinstance(loader, kind):
            break
        inner = getattr(loader, "iterable", None)
        if inner is None or not hasattr(inner, "__iter__"):
            found = [value for value in getattr(loader, "__dict__", {}).values() if isinstance(value, kind)]
            if len(found) != 1 or isinstance(loader, Original):
                break
            inner = found[0]
        loader = inner
    return loader


def is_warm(loader: Any) -> bool:
    """Whether the loader's next pass uses worker processes that another pass has started. A loader draws one number when it starts them."""
    loader = innermost(loader)
    return bool(getattr(loader, "persistent_workers", False)) and getattr(loader, "_iterator", None) is not None


def make_warm(loader: Any, warm: bool) -> None:
    """Starts or ends such worker processes of a torch DataLoader. Draws from generators."""
    from .following import Original
    loader = innermost(loader)
    torch = sys.modules.get("torch")
    if torch is None or not getattr(loader, "persistent_workers", False) or is_warm(loader) == warm:
        return
    if isinstance(loader, Original):
        loader = loader.loader
    if warm:
        torch.utils.data.DataLoader.__iter__(loader)
    else:
        loader._iterator = None


def capture_for(loader: Any) -> Dict[str, Any]:
    """What the order of the loader's next pass is drawn from."""
    return {**capture(devices=False), "loader": [generator.get_state() for generator in generators_of(loader)]}


def restore_for(loader: Any, state: Dict[str, Any]) -> None:
    restore(state)
    for generator, kept in zip(generators_of(loader), state.get("loader", [])):
        generator.set_state(kept)


class Preserved:
    """A `with` block that leaves all generators as it found them, those of the loader too."""

    def __init__(self, loader: Any = None):
        self._loader = loader

    def __enter__(self) -> None:
        self._state = {**capture(), **capture_for(self._loader)}

    def __exit__(self, *_: object) -> None:
        restore_for(self._loader, self._state)
