"""Lightning's Trainer as a worker of a run, by one callback.

    from atoll.lightning import AtollCallback
    Trainer(max_epochs=-1, callbacks=[AtollCallback("host:7600", state_dir="s", name="w0")]).fit(module, loader)
"""
from __future__ import annotations

import inspect
from typing import Any, List, Optional

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:
    from pytorch_lightning.callbacks import Callback  # type: ignore[assignment]

from . import batch as batches
from .data_order import with_length_fingerprint
from .errors import InvalidArgument
from .joining import Path, join
from .run import Run

MAX_BATCHES_PER_STEP = inspect.signature(join).parameters["max_batches_per_step"].default


class AtollCallback(Callback):
    """Joins when training begins, and ends training when the worker has left the run. The arguments are those of atoll.join.

    When training ends, the worker pushes and leaves before on_train_end of any callback, which may replace the parameters. When training
    raises, it leaves without a push. `counts`: with several optimizers, the index of the one whose steps count.
    """

    def __init__(self, coordinator: str, counts: Optional[int] = None, *, state_dir: Path, **options: Any):
        self.run: Optional[Run] = None
        self._coordinator, self._counts, self._options = coordinator, counts, {"state_dir": state_dir, **options}
        self._followed: Any = None  # the loader that follows the run
        self._counter = batches.BatchCounter()
        self._losses: List[Any] = []  # of the micro-batches since the last optimizer step

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == "fit":  # a new list: the Trainer is going through the old one
            trainer.callbacks = [_First(self), *_without_first(trainer, self)]

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        trainer.callbacks = _without_first(trainer, self)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._check_accumulation(trainer)
        self._losses = []
        optimizers = list(trainer.optimizers)
        counted = optimizers[self._counts] if self._counts is not None else None
        self.run = join(self._coordinator, pl_module, optimizers if len(optimizers) > 1 else optimizers[0], counts=counted,
                        **with_length_fingerprint(self._options, trainer.train_dataloader))
        self._follow(trainer)
        if not self.run.running:
            trainer.should_stop = True

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.train_dataloader is not self._followed:  # reload_dataloaders_every_n_epochs
            self._follow(trainer)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> Any:
        if self.run is None or not self.run.running:
            return -1  # ends the epoch; should_stop ends the rest
        self._check_accumulation(trainer)  # GradientAccumulationScheduler changes it
        samples, tokens = self._counter.count(batch, self.run.context)
        self.run.count_batch(tokens, samples)
        return None

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        if pl_module.automatic_optimization:  # Lightning has divided the loss, also in a last accumulation of fewer batches
            self._losses.append(loss.detach() * trainer.accumulate_grad_batches)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any, *_: Any) -> None:
        losses, self._losses = self._losses, []
        if losses and self.run is not None:
            self.run.suggest_loss(sum(float(loss) for loss in losses) / len(losses))

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self.run is None:
            return
        # Only on_train_batch_start counts batches. step() would count one that only accumulates gradients a second time.
        stepped = self.run.step_taken
        if not (self.run.step(samples=0) if stepped else self.run.running):
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if self.run is not None:
            self.run.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        if self.run is not None:
            self.run.abandon()

    def _check_accumulation(self, trainer: Any) -> None:
        accumulated, most = trainer.accumulate_grad_batches, self._options.get("max_batches_per_step", MAX_BATCHES_PER_STEP)
        if accumulated > most:
            raise InvalidArgument(f"the Trainer takes an optimizer step after accumulate_grad_batches={accumulated} batches, and the worker waits "
                                  f"for one for max_batches_per_step={most}: give AtollCallback(..., max_batches_per_step={accumulated})")

    def _follow(self, trainer: Any) -> None:
        """Makes the Trainer's loader read from this worker's place in the data."""
        self._followed = trainer.train_dataloader
        self._counter = batches.BatchCounter(self._followed)
        if self.run is None or not self.run.running:
            return
        # The Trainer takes batches ahead from a loader without a length, so these would be counted too early.
        if self.run.partitions == 1 and not hasattr(getattr(self._followed, "dataset", None), "__len__"):
            return
        if not self.run.follow_data(self._followed):
            return
        # The Trainer opened the loader before it called this callback.
        fetcher = getattr(trainer.fit_loop, "_data_fetcher", None)
        if fetcher is not None:
            iter(fetcher)


class _First(Callback):
    """The first of the Trainer's callbacks, so that no other has replaced the parameters when the worker pushes its last steps."""

    def __init__(self, owner: AtollCallback):
        self.owner = owner

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.owner.on_train_end(trainer, pl_module)


def _without_first(trainer: Any, owner: AtollCallback) -> List[Any]:
    return [one for one in trainer.callbacks if not (isinstance(one, _First) and one.owner is owner)]
