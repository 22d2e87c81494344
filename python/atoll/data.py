"""The place in the data: passes over the user's loader, going back and forth, and what a restart needs to find the place again.

A position is the number of samples that this rank has taken from its part of the data, over all passes.
"""
from __future__ import annotations

import time
import warnings
from typing import Any, Callable, Dict, List, Optional

from . import batch as batches
from . import random_state
from .data_order import Place, Replaced, follows, has_indices, replace_sampler, uneven_reading
from .errors import FailedPrecondition, InvalidArgument
from .following import Original, follow, follow_passes
from .pass_journal import Pass, PassJournal
from .progress import warn

KEPT = 8  # snapshots that can be gone back to, and passes that the journal has
KEPT_PASSES = 64  # a round may have many short ones


class LoaderIsOver(Exception):
    """An iterator that cannot be restarted has ended."""


class PassIsOver(Exception):
    """The pass has no further batch, and the caller wants to know."""


class DataPosition:
    """Gives batches from the loader, and counts them. Attach a loader before the first batch."""

    def __init__(self, rank: int = 0, ranks: int = 1, journal: Optional[PassJournal] = None):
        self.partition, self.partitions, self.samples = 0, 1, 0
        self._stepped = 0  # samples of the steps that were answered; a batch after them may never get its step
        self._journal = journal or PassJournal()
        self.seconds = 0.0  # spent in the loader since the last take_seconds()
        self.seed = 0       # of the run, for the order of shared data
        self.configuration: Dict[str, Any] = {}  # of the run
        self._compared = False  # with the size of the data
        self._rank, self._ranks = rank, ranks
        self._undo: Optional[Callable[[], None]] = None  # gives the loader its own sampler back
        self._batch_size = 0  # of a loader that reads a part; 0: batches are looked at
        self._counting = False  # a loader that the loop iterates over counts its batches
        self._following: Any = None  # that loader
        self._loader: Any = None
        self._counter = batches.BatchCounter()
        self._iterator: Any = None
        self._first: List[Any] = []  # a batch that was taken ahead
        self._generators: List[Any] = []  # states for the loader's own generators, once there is one
        self._passes: List[Pass] = []
        self._new_loader = False  # passes of an earlier life are of another one
        self._snapshots: Dict[int, Any] = {}  # position: state of a loader with state_dict
        self._in_run_order = False  # a loader has read in the order of the run
        self._keeps_own_order = False  # an earlier life has read the only part in the order of its loader

    # ---- what the engine asks for

    def set_partition(self, partition: int, partitions: int) -> None:
        """Part `partition` of `partitions`, from its first sample."""
        if (partition, partitions) != (self.partition, self.partitions):
            self._passes, self._snapshots, self._iterator = [], {}, None
        self.partition, self.partitions = partition, partitions
        self.seek(0)

    def seek(self, samples: int) -> None:
        """Continue after this number of samples of the part. The loader is asked at the next batch."""
        if samples != self.samples or self._iterator is None:
            self.samples, self._iterator = samples, None
        self._stepped = samples

    def stepped(self) -> None:
        """The engine has heard of a step on all samples so far."""
        self._stepped = self.samples

    def state(self) -> Dict[str, Any]:
        """What another process needs to continue here with an equal loader."""
        kept: Dict[str, Any] = {"partition": self.partition, "partitions": self.partitions, "samples": self._stepped}
        if self._in_run_order:
            kept["order"] = "run"
        begun = [one for one in self._passes if one.start <= self._stepped]
        if begun:
            kept["pass"], kept["warm"] = [begun[-1].number, begun[-1].start, begun[-1].random], begun[-1].warm
            if begun[-1].loader is not None and self._order_is_in_state():
                kept["pass_loader"] = begun[-1].loader
        if self._loader is not None:
            kept["generators"] = random_state.capture_for(self._loader)["loader"]
        # A batch that was taken ahead is none that the loop has had.
        ahead = bool(self._first) or self._stepped != self.samples
        loader_state = self._snapshots.get(self._stepped) if ahead else self._loader_state()
        if loader_state is not None:
            self._remember(loader_state)
            kept["loader"] = loader_state
        return kept

    def load(self, state: Dict[str, Any]) -> None:
        self.partition, self.partitions, self.samples = state["partition"], state["partitions"], state["samples"]
        self._stepped, self._iterator = self.samples, None
        self._in_run_order = state.get("order") == "run"
        # An older release read a single part in the loader's own order. Another order would skip samples of the pass, and repeat others.
        self._keeps_own_order = self.partitions == 1 and self.samples > 0 and not self._in_run_order
        self._passes = []
        if "pass" in state:
            number, start, random = state["pass"]
            self._passes = [Pass(number, start, random, state.get("pass_loader"), state.get("warm", False))]
        self._snapshots = {self.samples: state["loader"]} if "loader" in state else {}
        self._first, self._generators = [], state.get("generators", [])

    # ---- what the loop asks for

    def attach(self, loader: Any, samples: Optional[Callable[[Any], Any]] = None) -> batches.BatchCounter:
        """Reads from this loader from now on: an iterable, or a function (partition, partitions, start_sample) -> iterable.

        `samples`: the caller's function that counts the samples of a batch. Returns what counts the batches.
        """
        if loader is self._loader or (self._loader is not None and self._is_wrapped_again(loader)):
            self._loader = loader
            if samples is not None:
                self._counter = batches.BatchCounter(loader, samples)
            return self._counter
        if not _places_itself(loader) and not hasattr(loader, "__iter__"):
            raise InvalidArgument("run.steps needs an iterable, or a function (partition, partitions, start_sample), not a "
                                  f"{type(loader).__name__}")
        if self._loader is not None and not _places_itself(loader):
            self._passes, self._snapshots, self._new_loader = [], {}, True
        self.release()
        self._loader, self._iterator, self._counter = loader, None, batches.BatchCounter(loader, samples)
        for generator, kept in zip(random_state.generators_of(loader), self._generators):
            generator.set_state(kept)
        self._generators = []
        return self._counter

    def _is_wrapped_again(self, loader: Any) -> bool:
        """Another wrapper, as a loop over epochs makes, of the loader that is read."""
        inner = random_state.innermost(loader)
        return inner is not loader and inner is random_state.innermost(self._loader)

    def next(self, across: bool = True) -> Any:
        """The next batch; begins the next pass at the end of one. LoaderIsOver when that is not possible.

        `across`: False raises PassIsOver at the end of a pass; the next call begins the next one.
        """
        begin = time.monotonic()
        try:
            if self._iterator is None:
                self._first = []
                self._open()
            got = self._take(across)
            self.samples += self._batch_size or self._counter.count(got)[0]
            return got
        finally:
            self.seconds += time.monotonic() - begin

    def release(self) -> None:
        """Leaves the loader as its owner made it."""
        if self._undo is not None:
            self._undo()
        self._undo, self._iterator, self._batch_size, self._counting, self._following = None, None, 0, False, None

    def follow_run(self, loader: Any, required: bool = False) -> bool:
        """Makes a torch DataLoader that the loop iterates over read this worker's part of shared data, wherever the run moves it.

        False: it cannot; FailedPrecondition where that is `required`.
        """
        if self._counting and loader is not self._following:
            warn("another loader follows the run from here on: the one that was given to follow_run before reads its own data again",
                 stacklevel=3)
        self.release()
        replaced = self._read_part(loader)
        if replaced is None and required:
            raise self._no_parts(loader)
        if replaced is not None:
            unfollow, put_back = follow(loader, self, replaced.batch_size), replaced.undo

            def undo() -> None:
                unfollow()
                put_back()

            self._undo, self._counting, self._following = undo, True, loader
        return replaced is not None

    def follow_loop(self, loader: Any) -> bool:
        """Makes the loader of a trainer read from the place: in the order of the run, or in its own passes where that does not count.

        False: it cannot, and the data is the worker's own. FailedPrecondition: it cannot, and the data is divided.
        """
        if self.partitions > 1:
            return self.follow_run(loader, required=True)
        if self._reads_in_run_order(loader) and self.follow_run(loader):
            return True
        kept = self._passes, self._snapshots, self._new_loader
        self.release()
        followed = follow_passes(loader, self)
        if followed is None:
            return False
        original, undo = followed
        self.attach(original)
        self._passes, self._snapshots, self._new_loader = kept  # a trainer that makes a loader for each of its epochs goes on with an equal one
        self._undo, self._counting, self._following = undo, True, loader
        return True

    def _reads_in_run_order(self, loader: Any) -> bool:
        """Whether the data is that of all workers, whose order the run decides. A loader that has all of it may be unable to follow."""
        shared = self.configuration.get("data", {}).get("mode") == "DATA_MODE_SHARED"
        return self.partitions > 1 or (shared and not self._keeps_own_order and follows(loader))

    def count(self, samples: int) -> None:
        """The loop says that it has taken samples. A loader that follows the run has counted them."""
        if not self._counting:
            self.samples += samples

    def places(self) -> List[Place]:
        """The place of each rank."""
        # Rank r of R reads samples r, r + R, ... of the part, which is part r * N + p of R * N.
        return [Place(self.seed, rank * self.partitions + self.partition, self._ranks * self.partitions, self.samples)
                for rank in range(self._ranks)]

    @property
    def loader(self) -> Any:
        """What is read; None before the first."""
        return self._loader

    def take_seconds(self) -> float:
        seconds, self.seconds = self.seconds, 0.0
        return seconds

    # ---- passes

    def _take(self, across: bool = True) -> Any:
        if self._first:
            return self._first.pop()
        try:
            return next(self._iterator)
        except StopIteration:
            pass
        if _places_itself(self._loader):
            self._iterator = iter(self._placed(self.samples))
        else:
            if hasattr(self._loader, "__next__"):
                raise LoaderIsOver
            if not across:
                raise PassIsOver
            self._begin_pass(self._passes[-1].number + 1 if self._passes else 0)
        try:
            return next(self._iterator)
        except StopIteration:
            raise InvalidArgument("the loader is empty: a pass over it gives no batch") from None

    def _ahead(self) -> List[Any]:
        """The next batch of the pass, if it has one: a shuffling loader draws its order with its first batch."""
        for batch in self._iterator:
            return [batch]
        return []

    def _begin_pass(self, number: int) -> None:
        self._set_epoch(number)
        begun = Pass(number, self.samples, random_state.capture_for(self._loader), self._loader_state(), random_state.is_warm(self._loader))
        self._passes = [*self._passes, begun][-KEPT_PASSES:]
        kept = self._passes[-KEPT:]
        if not self._order_is_in_state():
            kept = [one._replace(loader=None) for one in kept]
        self._journal.write(self.partition, self.partitions, kept)
        self._iterator = iter(self._loader)

    def _open(self) -> None:
        """An iterator at the position."""
        target = self.samples
        if _places_itself(self._loader):
            self._iterator = iter(self._placed(target))
            return
        if self._reads_in_run_order(self._loader) and self._open_part():
            return
        if target in self._snapshots and hasattr(self._loader, "load_state_dict"):
            self._passes = [kept for kept in self._passes if kept.start <= target]
            self._set_epoch(self._passes[-1].number if self._passes else 0)
            with random_state.Preserved(self._loader):
                self._loader.load_state_dict(self._snapshots[target])
                self._iterator = iter(self._loader)
                self._first = self._ahead()
            return
        begun = [kept for kept in self._passes if kept.start <= target]
        if not begun and target == 0:
            self._passes = []
            self._begin_pass(0)
            return
        self._skip([kept for kept in self._all_passes() if kept.start <= target], target)

    def _all_passes(self) -> List[Pass]:
        """Those of this life, among those that only the journal of a life before knows."""
        kept = [] if self._new_loader else self._journal.read(self.partition, self.partitions)
        if not self._passes:
            return kept
        first, last = self._passes[0].number, self._passes[-1].number
        return [*(one for one in kept if one.number < first), *self._passes, *(one for one in kept if one.number > last)]

    def _skip(self, begun: List[Pass], target: int) -> None:
        """Takes batches from the beginning of the newest pass in `begun` that the position is in."""
        if hasattr(self._loader, "__next__"):
            warnings.warn(f"the loader is an iterator, which cannot go to sample {target}: it continues where it stands. Give run.steps an "
                          "iterable that can be started again, or a function (partition, partitions, start_sample)", stacklevel=4)
            self._iterator = self._loader
            return
        # The kept state of the loader's own generators is older than a pass that only the journal knows.
        drawn_later = bool(begun) and (not self._passes or begun[-1].number > self._passes[-1].number)
        drawn: List[Any] = []
        with random_state.Preserved(self._loader):
            if begun:
                self._passes, self.samples = begun[:-1], begun[-1].start
                random_state.make_warm(self._loader, begun[-1].warm)
                random_state.restore_for(self._loader, begun[-1].random)
                if begun[-1].loader is not None:
                    self._loader.load_state_dict(begun[-1].loader)
                self._begin_pass(begun[-1].number)
            else:
                self._passes, self.samples = [], 0
                self._begin_pass(0)
            if self.samples == target:
                if begun and begun[-1].loader is not None:
                    self._snapshots[target] = begun[-1].loader
                self._first = self._ahead()
            while self.samples < target:
                self.samples += self._counter.count(self._take())[0]
            drawn = [generator.get_state() for generator in random_state.generators_of(self._loader)]
        if drawn_later:
            for generator, after in zip(random_state.generators_of(self._loader), drawn):
                generator.set_state(after)
        if self.samples > target:
            warn(f"{self.samples - target} samples of this pass are left out: the worker was at sample {target}, and no batch of the loader begins "
                 "there. Restart a worker with the batch size that it had, or change it between two passes", stacklevel=4)

    def _placed(self, samples: int) -> Any:
        own = self.places()[self._rank]
        return self._loader(own.partition, own.partitions, samples)

    def _open_part(self) -> bool:
        """An iterator over this worker's part of shared data, without an end. False: a loader without parts reads the only one."""
        if not isinstance(self._loader, Original):
            self.release()
        replaced = self._read_part(self._loader)
        if replaced is None:
            if self.partitions > 1:
                raise self._no_parts(self._loader)
            return False
        self._undo, self._batch_size = replaced.undo, replaced.batch_size
        with random_state.Preserved(self._loader):
            self._iterator = iter(self._loader)
        # The sampler is looked at for the first batch. After it the loader is its owner's again, who may read it for himself.
        self._first = self._ahead()
        replaced.undo()
        self._undo = None
        return True

    def _read_part(self, loader: Any) -> Optional[Replaced]:
        replaced = replace_sampler(loader, self.places, self._rank)
        self._in_run_order = replaced is not None
        if replaced is not None and not self._compared:
            self._compared = True
            uneven = uneven_reading(len(loader.dataset), self.partitions, self.configuration)
            if uneven and self._rank == 0:
                warn(uneven, stacklevel=2)
        return replaced

    def _no_parts(self, loader: Any) -> FailedPrecondition:
        dataset = getattr(loader, "dataset", None)
        over = f" over a {type(dataset).__name__}, which has no indices" if dataset is not None else ""
        return FailedPrecondition(
            f"the run divides its data: this worker reads part {self.partition} of {self.partitions}, and this loader has no parts: it is "
            f"a {type(loader).__name__}{over}. Use a DataLoader over a dataset with "
            "indices. A loop with run.steps can give it a function (partition, partitions, start_sample) that returns an iterable. If "
            "every worker has its own data, set data.mode: local in the run's configuration")

    def _set_epoch(self, number: int) -> None:
        loader = random_state.innermost(self._loader)
        for part in (loader, getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None)):
            set_epoch: Optional[Callable[[int], None]] = getattr(part, "set_epoch", None)
            if callable(set_epoch):
                set_epoch(number)

    def _loader_state(self) -> Any:
        """A copy of the loader's state; None when it has none."""
        # accelerate's loaders have the functions, and a state only where this attribute is true.
        keeps = getattr(self._loader, "use_stateful_dataloader", True)
        if keeps and hasattr(self._loader, "state_dict") and hasattr(self._loader, "load_state_dict"):
            return self._loader.state_dict()
        return None

    def _order_is_in_state(self) -> bool:
        """Whether a pass of a loader with a state is begun again by that state. A DataLoader over indices draws its order from generators."""
        return not has_indices(getattr(random_state.innermost(self._loader), "dataset", None))

    def _remember(self, loader_state: Any) -> None:
        self._snapshots[self._stepped] = loader_state
        for position in sorted(self._snapshots)[:-KEPT]:
            del self._snapshots[position]


def _places_itself(loader: Any) -> bool:
    return callable(loader) and not hasattr(loader, "__iter__")
