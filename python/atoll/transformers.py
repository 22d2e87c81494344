"""Hugging Face's Trainer as a worker of a run, by one callback.

    from atoll.transformers import AtollCallback
    trainer = Trainer(model, args, train_dataset=data, callbacks=[AtollCallback("host:7600", state_dir="s", name="w0")])
    trainer.train()
"""
from __future__ import annotations

import contextlib
import functools
import warnings
from typing import Any, Callable, Iterator, List, Optional

from transformers import Trainer, TrainerCallback

from . import batch as batches
from .data_order import with_length_fingerprint
from .errors import FailedPrecondition
from .joining import Path, join
from .run import Run


class AtollCallback(TrainerCallback):
    """Joins when training begins, and ends training when the worker has left the run. The arguments are those of atoll.join.

    The run decides when training ends, so set TrainingArguments(max_steps=...) above the steps of the run. When the Trainer
    ends first, the steps done so far are pushed, and the worker leaves. This comes before load_best_model_at_end and before on_train_end
    of any callback, which may replace the parameters. When training raises, the worker leaves without a push.
    """

    def __init__(self, coordinator: str, *, state_dir: Path, **options: Any):
        self.run: Optional[Run] = None
        self._coordinator, self._options = coordinator, {"state_dir": state_dir, **options}
        self._counter: Any = None
        self._guarded = False  # this callback sees training that raises, and the end of training before the Trainer loads a checkpoint
        _guard_trainers()

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, train_dataloader: Any = None,
                       **_: Any) -> Any:
        self._abandon()  # of an earlier training that raised
        if not self._guarded:
            if args.load_best_model_at_end:
                raise FailedPrecondition(
                    "load_best_model_at_end is set, and this Trainer has a training loop of its own: it would load the best checkpoint before "
                    "the worker pushes its last steps, and the run would take the checkpoint for progress. Set load_best_model_at_end=False, "
                    "and load trainer.state.best_model_checkpoint after train()")
            warnings.warn("this Trainer has a training loop of its own: when it raises, the worker stays in the run until "
                          "callback.run.abandon() is called, or the process ends", stacklevel=2)
        self.run = join(self._coordinator, model, optimizer, **with_length_fingerprint(self._options, train_dataloader))
        try:
            self._counter = model.register_forward_pre_hook(self._count, with_kwargs=True)
            self._find_place(train_dataloader)
        except BaseException:
            self._abandon()
            raise
        if not self.run.running:
            control.should_training_stop = True
        return control

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> Any:
        if self.run is not None and not self.run.running:
            # The worker left before its first step. The Trainer looks at should_training_stop only after one, which must change nothing.
            model.zero_grad(set_to_none=True)
        return control

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        if self.run is not None and not self.run.step(samples=0):
            control.should_training_stop = True
        return control

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._leave()

    def _leave(self) -> None:
        """Pushes the steps done so far and leaves, if the worker is in a run."""
        self._stop_counting()
        if self.run is not None:
            self.run.close()

    def _abandon(self) -> None:
        """Leaves without a push, if the worker is in a run."""
        self._stop_counting()
        if self.run is not None:
            self.run.abandon()

    def _stop_counting(self) -> None:
        if self._counter is not None:
            self._counter.remove()
        self._counter = None

    def _count(self, model: Any, arguments: Any, keywords: Any) -> None:
        if model.training and self.run is not None and self.run.running:
            samples, tokens = batches.count(keywords or arguments, self.run.context)
            self.run.count_batch(tokens, samples)

    def _find_place(self, loader: Any) -> None:
        """The Trainer's loader follows the run. With local data it goes on in its own passes, where earlier lives have stopped."""
        assert self.run is not None
        if loader is None or self.run.follow_data(loader) or not self.run.samples:
            return
        warnings.warn(f"the Trainer's loader is a {type(loader).__name__}, no DataLoader of torch: the {self.run.samples} samples that this "
                      "worker has taken before are read again", stacklevel=2)


def _guard_trainers() -> None:
    """From now on a Trainer tells its AtollCallback when training raises, and when it ends, before anything replaces the parameters.

    By itself it tells callbacks only of a normal end, after it has loaded the best checkpoint. An outer wrapper is the only place that
    sees every exception; the running loop gives callbacks no way to its Trainer. Trainers without an AtollCallback are not affected.
    """
    original: Any = getattr(Trainer, "_inner_training_loop", None)
    if original is None or hasattr(original, "_atoll"):
        return

    @functools.wraps(original)
    def guarded(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        ours: List[AtollCallback] = [one for one in trainer.callback_handler.callbacks if isinstance(one, AtollCallback)]
        if not ours:
            return original(trainer, *args, **kwargs)
        # The run knows the place in the data. A checkpoint of the Trainer would skip batches of that place.
        skip, trainer.args.ignore_data_skip = trainer.args.ignore_data_skip, True

        def leave() -> None:
            for callback in ours:
                callback._leave()

        for callback in ours:
            callback._guarded = True
        try:
            # Both come after the last evaluation and the last checkpoint. The order of the callbacks must not matter.
            with _before(trainer, "_load_best_model", leave), _before(trainer.callback_handler, "on_train_end", leave):
                return original(trainer, *args, **kwargs)
        except BaseException:
            for callback in ours:
                callback._abandon()
            raise
        finally:
            trainer.args.ignore_data_skip = skip
            for callback in ours:
                callback._guarded = False

    setattr(guarded, "_atoll", True)
    setattr(Trainer, "_inner_training_loop", guarded)


@contextlib.contextmanager
def _before(owner: Any, name: str, act: Callable[[], None]) -> Iterator[None]:
    """While it is open, a call of owner.name calls act() first."""
    original, own = getattr(owner, name), name in vars(owner)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        act()
        return original(*args, **kwargs)

    setattr(owner, name, wrapped)
    try:
        yield
    finally:
        if own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)
