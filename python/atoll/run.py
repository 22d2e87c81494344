"""A worker that is joined to a run, as the user's loop sees it."""
from __future__ import annotations

import math
import os
import time
from typing import Any, Callable, Dict, Iterator, Optional

from ._counts import LARGEST_COUNT, number, whole_number
from .client import EndReason
from .data import DataPosition, LoaderIsOver
from .errors import FailedPrecondition, InvalidArgument
from .inner import Inner
from .open_runs import Uses, add, weakly
from .progress import warn
from .session import Session, context_ended, ended_reason

LATE_STEPS = 100  # calls of optimizer.step() after the end that are taken for a loop that winds down


class Run:
    """What atoll.join returns. Use it in a `with` statement, from the thread that joined."""

    _closed = True  # until __init__ is through

    def __init__(self, session: Session, inner: Inner, data: DataPosition, ranks: int, max_batches_per_step: int,
                 max_seconds_per_step: float, uses: Uses):
        self.uses, self._process = uses, os.getpid()
        self._session, self._inner, self._data, self._ranks = session, inner, data, ranks
        self._max_batches, self._max_seconds = max_batches_per_step, max_seconds_per_step
        self._closed = False
        self._steps: Any = None  # of the newest call of steps()
        self._in_steps: Any = None  # the call of steps() whose batch the loop has
        self._loss: Optional[float] = None
        self._stepped: Optional[Dict[str, Any]] = None  # the step that was taken and not answered yet
        self._last: Dict[str, float] = {}  # of the last step; the engine's status is a moment older
        self._late_steps = 0
        self._compared = False
        self._begin_step()

    # ---- the loop

    def steps(self, loader: Any, samples: Optional[Callable[[Any], Any]] = None) -> Iterator[Any]:
        """Batches of `loader`, for as long as the worker has steps to do.

        The loader is restarted at its end, and moved when the run asks for another place in the data. `loader`: an iterable,
        or a function (partition, partitions, start_sample) that returns one. Ends on drain, on stop and at the end of the run.
        `samples`: a function that counts the samples of a batch, such as len; default: see docs/reference/python.md, "Tokens".
        """
        self._check_open()
        counter = self._data.attach(loader, samples)
        self._steps = mine = object()
        while self._advance():
            try:
                batch = self._data.next()
            except LoaderIsOver:
                self._decline()
                continue
            self._count_batch(counter.count(batch, self.context)[1])
            self._in_steps = mine
            try:
                yield batch
            finally:
                if self._in_steps is mine:
                    self._in_steps = None
            if self._steps is not mine:
                raise FailedPrecondition("another run.steps(loader) has begun since, and a run takes its batches from one loader at a time: "
                                         "end this loop first, or join the loaders into one that gives a batch of both")

    def step(self, loss: Any = None, tokens: Optional[int] = None, samples: Optional[int] = None) -> bool:
        """Ends a step of the run: call it after each optimizer step. False: the worker has left, end the loop.

        Needed in a loop that does not use steps(), or that takes several optimizer steps for one batch of steps().

        `loss`: mean per token; NaN is not known. Without an optimizer, an infinite loss drops the round. `tokens`: used by this step
        in all, for the merge's weights. `samples`: taken from this worker's part of the data by this step (default 1); steps() counts those
        of its batches itself. A step that a GradScaler skipped does not count.
        """
        self._check_open()
        self.report(loss, tokens)
        self._take_samples(1 if samples is None else samples)
        if not self._inner.hooked and self._session.step is not None:
            # NaN: the loss is not known. The push is checked in every case.
            self._stepped = {"finite": self._loss is None or not math.isinf(self._loss), "norm": math.nan}
        if self._stepped is None:
            self._count_batch(0)
            return self._session.end is None
        return self._advance()

    def count_batch(self, tokens: int, samples: int) -> None:
        """Counts a micro-batch of a loop that does not use steps(), before its optimizer step."""
        self._take_samples(samples)
        self._count_batch(whole_number("tokens", tokens))

    def follow_run(self, loader: Any, required: bool = False) -> bool:
        """Makes a torch DataLoader read this worker's part of shared data; for loops that iterate over it without steps().

        The next pass over the loader begins at this worker's place. When the run moves the worker, the next batch comes from the new place,
        and batches that were drawn ahead are dropped. The loader counts its samples, so the `samples` of step() and count_batch() are not
        used. A pass has as many batches as before. Ends with the run. False: the loader is of another kind, and unchanged;
        FailedPrecondition where that is `required`.
        """
        return self._data.follow_run(loader, required)

    def follow_data(self, loader: Any) -> bool:
        """For callbacks: makes the loader of a trainer read from this worker's place, in shared and in local data.

        Local data is read in the loader's own passes. The first batch comes after the samples that earlier lives have taken. False: no
        DataLoader, and unchanged. FailedPrecondition: the data is divided, and the loader has no parts.
        """
        return self._data.follow_loop(loader)

    def report(self, loss: Any = None, tokens: Optional[int] = None) -> None:
        """What the package cannot see of the current step: its loss, mean per token, and the tokens that it used in all.

        Without it the loss is the sum of what backward() was called on, and the tokens are counted in the batches.
        """
        mean = self._loss if loss is None else number("loss", loss)
        if tokens is not None:
            self._tokens = whole_number("tokens", tokens)
        self._loss = mean

    def suggest_loss(self, loss: float) -> None:
        """For callbacks: the loss of the current step, unless report() gave one. It counts more than a closure's result."""
        if self._loss is None:
            self._loss = number("loss", loss)

    loss = property(None, report, doc="Assigning it is report().")

    # ---- what is known

    @property
    def config(self) -> Dict[str, Any]:
        """The run as it was joined: name, id, configuration, tensors."""
        return self._session.run

    @property
    def context(self) -> int:
        """Tokens of one sample, by the `context` of the run's model."""
        sections = self.config.get("config", {}).get("model", {}).values()  # one, with the name of the family
        return max((int(section.get("context", 1)) for section in sections), default=1)

    @property
    def version(self) -> int:
        """The published version that the parameters come from, also after the end."""
        message = self._session.step or self._session.end
        return int(message["version"]) if message else self._version

    @property
    def step_taken(self) -> bool:
        """Whether an optimizer step was taken that step() or the loop of steps() has not counted yet."""
        return self._stepped is not None

    @property
    def learning_rate(self) -> float:
        """Of the current step: what the run's schedule says, or the optimizer's own with learning_rate="mine" (its first group). 0.0 when
        no step is open: before the first one and after the end."""
        if self._session.step is None:
            return 0.0
        own = self._inner.own_learning_rate()
        return float(self._session.step["learning_rate"]) if own is None else own

    @property
    def partition(self) -> int:
        """The part of the data that this worker reads, counted from 0."""
        return self._data.partition

    @property
    def partitions(self) -> int:
        """The number of parts; 1 where every worker has its own data."""
        return self._data.partitions

    @property
    def samples(self) -> int:
        """The samples of that part that were taken so far, by all ranks and over all lives of the worker."""
        return self._data.samples * self._ranks

    @property
    def closed(self) -> bool:
        """Whether the context of this run has ended."""
        return self._closed

    @property
    def running(self) -> bool:
        """Whether the worker is a member: false after drain, stop and the end of the run."""
        return not self._closed and self._session.end is None

    @property
    def end_reason(self) -> Optional[EndReason]:
        """Why the worker left; None while it runs."""
        return ended_reason(self._session.end)[0]

    @property
    def end_text(self) -> str:
        """A sentence about that."""
        return ended_reason(self._session.end)[1]

    def status(self) -> Dict[str, Any]:
        """The live status: phase, waiting_for, version, step, loss, tokens_per_second and more. Any thread may call it."""
        self._check_open()
        return {**self._session.status(), **self._last, "partition": self.partition, "partitions": self.partitions, "samples": self.samples}

    # ---- the end

    def drain(self) -> None:
        """Leave after the steps done so far are pushed. The loop goes on until steps() ends or step() returns False."""
        self._check_open()
        self._session.drain()

    def stop(self) -> None:
        """Leave without a push."""
        self._check_open()
        self._session.stop()

    def close(self) -> None:
        """Ends the worker as the end of the `with` block does: pushes the steps done so far, then leaves."""
        if self._closed:
            return
        try:
            while self._advance():
                self._decline()
        finally:
            self._release()

    def abandon(self) -> None:
        """Leaves without a push, as an exception in the `with` block does."""
        if not self._closed:
            self._release()

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: Any, failure: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def __del__(self) -> None:
        if self._closed or os.getpid() != self._process:
            return
        try:
            if self._session.end is None:
                warn("a run was dropped without run.close(): its worker leaves without a push, and further steps of the optimizer no longer "
                     "count. Use `with atoll.join(...) as run`", stacklevel=2)
        finally:
            self._release()

    def _release(self) -> None:
        self._closed = True
        self._inner.remove()
        self._data.release()
        self._session.close()

    # ---- one step

    def _start(self) -> "Run":
        """Waits for the first step. Called by join."""
        try:
            # Weak: the optimizer must not keep a run alive that the caller has dropped.
            self._inner.install(weakly(self._before_step), weakly(self._after_step), weakly(self._skipped_step), weakly(self._total),
                                weakly(self._foreign_step))
            add(self)
            self._session.signals.install()
            self._session.begin()
            self._inner.mark()
        except BaseException:
            self._release()
            raise
        return self

    def _total(self, value: float) -> float:
        return self._session.total(value)

    def _begin_step(self) -> None:
        self._loss = None
        self._tokens = 0
        self._batches = 0
        self._began = time.monotonic()
        self._version: int = 0

    def _advance(self) -> bool:
        """Answers the step that was taken, and serves events until the next is due."""
        self._check_open()
        stepped, self._stepped = self._stepped, None
        if stepped is not None and self._session.step is not None:
            version = self.version
            self._compare_with_configuration()
            seen = self._inner.take_loss()
            loss = self._session.answer_step(stepped["finite"], seen if self._loss is None else self._loss, stepped["norm"],
                                             self._data.take_seconds(), max(1, self._tokens), self._data.samples)
            self._data.stepped()
            self._last = {name: value for name, value in (("loss", loss), ("gradient_norm", stepped["norm"])) if math.isfinite(value)}
            self._begin_step()
            self._version = version
        if self._session.step is None:
            running = self._session.advance()
            self._began = time.monotonic()
            if running:
                self._inner.mark()
            return running
        return True

    def _decline(self) -> None:
        """The loop has no step to give."""
        if self._batches and self._inner.changed_since_mark():
            warn(f"parameters have changed in the last {self._batches} batches, and no step of the optimizer was counted in them. The changes "
                 "are pushed, and count as no step. Change parameters with the optimizer that you gave to atoll.join only, or join without an "
                 "optimizer and call run.step() after each step", stacklevel=4)
        self._session.decline_step()

    def _compare_with_configuration(self) -> None:
        """Warns once when steps are larger than the run's: tokens and samples above are not counted."""
        if self._compared or not self.config:
            return
        self._compared = True
        settings = self.config.get("config", {})
        inner = settings.get("inner", {})
        samples = int(inner.get("batch", 0)) * int(inner.get("accumulation", 1))
        tokens = samples * self.context
        used = max(1, self._tokens) * self._ranks  # as a step is answered
        what = "samples" if self.context == 1 else "tokens"
        size = "inner.batch" if self.context == 1 else "inner.batch (samples per step) and the model's context (tokens per sample)"
        remedy = f"give each step {samples} samples, as the run's configuration says, or begin a run with another {size}"
        if samples and used > tokens:
            warn(f"this step used {used} {what}, and the run counts at most {tokens} for a step: {remedy}", stacklevel=4)
        elif samples and 2 * used <= tokens:
            warn(f"this step used {used} {what}, and the run plans {tokens} for a step. A run ends after its {what}, so it takes "
                 f"{tokens / used:.3g} times the rounds of run.rounds: {remedy}", stacklevel=4)

    def _before_step(self) -> bool:
        """Whether the step counts."""
        if self._stepped is not None:
            raise FailedPrecondition("optimizer.step() was called twice for one step of the run: take one optimizer step for each batch of "
                                     "run.steps(loader), or call run.step() after each")
        if self._session.step is not None:
            self._inner.set_learning_rate(self.learning_rate)
            return True
        if self._session.evaluating:
            raise FailedPrecondition("the evaluation function called optimizer.step() of the run's optimizer: train in the loop only. An "
                                     "evaluation that trains needs a copy of the model (copy.deepcopy) and an optimizer of its own")
        self._late_steps += 1
        if self._late_steps == 1:
            warn(f"the worker has left the run{self._why()}: steps of the optimizer no longer count", stacklevel=4)
        if self._late_steps > LATE_STEPS:
            raise FailedPrecondition(f"the worker has left the run{self._why()}, and the loop goes on: end it when run.step() returns "
                                     "False, or use run.steps(loader)")
        return False

    def _foreign_step(self, optimizer: Any) -> None:
        if self._session.step is None:
            return
        kind = type(optimizer).__name__
        raise FailedPrecondition(
            f"a step of another optimizer ({kind}) changed the parameters of the one given to atoll.join. Its steps do not count, and the run "
            "would record its progress with too few steps. To reset the optimizer, keep it and call optimizer.state.clear(). For another one, "
            "leave the run and call atoll.join again with it. To use several in turn, join without an optimizer and call run.step() after "
            "each step")

    def _why(self) -> str:
        return f" ({self.end_text})" if self.end_text else ""

    def _after_step(self, stepped: bool, norm: float, loss: Any) -> None:
        if self._session.step is None:
            return
        if loss is not None and self._loss is None and getattr(loss, "numel", lambda: 1)() == 1:
            self._loss = float(loss.detach() if hasattr(loss, "detach") else loss)
        self._stepped = {"finite": stepped, "norm": norm}
        if stepped:
            self._inner.steps += 1

    def _skipped_step(self) -> None:
        """The batches so far were for nothing: they count neither for the weights nor for the loss."""
        self._tokens, self._loss = 0, None

    def _take_samples(self, samples: Any) -> None:
        taken = whole_number("samples", samples)
        if self._data.samples + taken > LARGEST_COUNT:
            raise InvalidArgument(f"samples is {samples}, which with the {self._data.samples} samples before is more than {LARGEST_COUNT}")
        if self._in_steps is None:  # steps() has counted its batch
            self._data.count(taken)

    def _count_batch(self, tokens: int) -> None:
        self._tokens += tokens
        self._batches += 1
        seconds = time.monotonic() - self._began
        if self._batches > self._max_batches or seconds > self._max_seconds:
            raise FailedPrecondition(
                f"no optimizer step in {self._batches - 1} batches and {seconds:.0f} s. If a step accumulates the gradients of more "
                "batches, set max_batches_per_step or max_seconds_per_step. Otherwise a GradScaler skips every step because the gradients "
                "are not finite, or the loop never calls optimizer.step(), or it steps another optimizer than the one given to atoll.join, or calls a "
                "`step` of it that was taken from it before atoll.join")

    def _check_open(self) -> None:
        if self._closed:
            raise context_ended()
        if os.getpid() != self._process:
            raise FailedPrecondition(f"this process is a fork of the one that joined the run (process {self._process}), and only that one has "
                                     "the worker: train there, or call atoll.join here with another name and state_dir")
