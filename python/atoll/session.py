"""The connection of an island to its engine: rank 0 holds it, and shares each event with the other ranks."""
from __future__ import annotations

import math
import signal
import time
from typing import Any, Dict, List, Optional, Tuple

from .client import Client, EndReason, Event, EventKind, Outcome, TensorSpec
from .distributed import Island
from .errors import AtollError, Cancelled, FailedPrecondition, error_of
from .progress import Progress, warn
from .replica import Replica, failure_message, message_of
from .signals import DrainOnSignal

SHARE_SECONDS = 2.0  # after which the other ranks hear of a wait that goes on
POLL_SECONDS = 0.1  # within which a signal is noticed while the loop waits for an event
AGAIN: Dict[int, str] = {signal.SIGINT: ". Press Ctrl-C again to leave without that", signal.SIGTERM: ". A second SIGTERM leaves without that"}


class Session:
    """Serves events until a step is due or the worker has left. All ranks call the same methods in the same order."""

    def __init__(self, options: Dict[str, Any], tensors: List[TensorSpec], replica: Replica, island: Island, progress: Optional[bool]):
        self._options, self._tensors, self._replica, self._island = options, tensors, replica, island
        self.signals = DrainOnSignal()
        self.run: Dict[str, Any] = {}
        self.step: Optional[Dict[str, Any]] = None  # the message of the STEP that is due
        self.end: Optional[Dict[str, Any]] = None   # the message of END
        self._client: Optional[Client] = None
        self._asked = False
        self._begun = False  # a step was due once
        self._trains = False  # a step was due since the last join
        self._progress = Progress(progress if island.rank == 0 else False, self.status)
        self._open()

    def _open(self) -> None:
        failure: Optional[AtollError] = None
        self._trains = False
        if self._island.rank == 0:
            try:
                self._client = Client(self._options, self._tensors)
            except AtollError as error:
                failure = error
        if self._island.size > 1:
            shared = self._island.share((failure.code, str(failure)) if failure else None)
            failure = failure or (error_of(*shared) if shared else None)
        if failure is not None:
            raise failure

    # ---- events

    def begin(self) -> None:
        """Waits for the first step. What ends a worker before it has trained nothing, and must not look like training.

        Returns when a step is due, when the run is finished (its last version is in the model), and with a warning when an
        operator has removed the worker. Raises what the signal stands for when one has ended the wait.
        """
        stepping = self.advance()
        self._progress.renew()
        if stepping or self.end is None or self.end["end_reason"] == EndReason.FINISHED:
            return
        text = (f"atoll.join ended before the first step, so the model is not trained here ({self.end['text']}). To train, start the program "
                "again, with the same name and state directory")
        failure = self.signals.interruption(text) if self.end["drains"] else None
        if self._island.rank == 0 and (failure is None or isinstance(failure, SystemExit)):  # which shows no text
            warn(text, stacklevel=4)
        if failure is not None:
            raise failure

    def advance(self) -> bool:
        """Serves events until a step is due. False: the worker has left; AtollError when it failed."""
        while self.step is None and self.end is None:
            event = self._next_event() if self._island.rank == 0 else None
            message = self._island.share(self._message_of(event) if event else None)
            if message is None:
                continue
            kind = EventKind(message["kind"])
            if kind is EventKind.STEP:
                self.step, self._begun, self._trains = message, True, True
            elif kind is EventKind.END:
                self._ended(message)
            elif kind is EventKind.JOINED:
                self._joined()
            else:
                self._serve(message, event)
        return self.end is None

    def answer_step(self, finite: bool, loss: float, norm: float, data_seconds: float, tokens: int, samples: int) -> float:
        """Answers the STEP that is due with the numbers of this rank; the engine gets those of the island. Returns the island's loss."""
        known = 0.0 if math.isnan(loss) else float(tokens)
        if self._island.size > 1:
            weighted, known, total, samples_of_all, drains, bad = self._island.sum(
                [0.0 if math.isnan(loss) else loss * tokens, known, float(tokens), float(samples), float(self.signals.drain),
                 float(not finite)])
            finite = bad == 0
            loss, tokens, samples = weighted / known if known else math.nan, int(total), int(samples_of_all)
            self.signals.drain = self.signals.drain or drains > 0
        self._pass_on_drain()
        self._answer(outcome=Outcome.DONE if finite else Outcome.NOT_FINITE, loss=loss, gradient_norm=norm, data_seconds=data_seconds,
                     tokens=tokens, samples=samples, message="" if finite else "the gradient is not finite")
        self.step = None
        self._progress.show()
        return loss

    def decline_step(self) -> None:
        """The loop has no more steps to give: the worker pushes what it has, and leaves."""
        self._answer(outcome=Outcome.DECLINED, message="the loop has ended")
        self.step = None

    @property
    def evaluating(self) -> bool:
        """Whether the caller's evaluation function runs."""
        return self._replica.evaluating

    def total(self, value: float) -> float:
        """The sum of one number over the ranks: the squared norm of a step's gradients."""
        total = self._island.sum([value])[0]
        if not self._replica.inner.sharded:
            self._replica.agreement.see(value, total)
        return total

    def drain(self) -> None:
        self.signals.drain = True
        self._pass_on_drain()

    def stop(self) -> None:
        if self._client is not None and self.end is None:
            self._client.stop()

    def status(self) -> Dict[str, Any]:
        status = self._client.status() if self._client is not None and not self._client.closed else {}
        # The engine tells its status once in a while.
        return {**status, "phase": "training"} if self._trains and status.get("phase") == "joining" else status

    def close(self) -> None:
        self._progress.end_line()
        self.signals.remove()
        if self._client is not None:
            self._client.close()

    # ---- parts

    def _next_event(self) -> Optional[Event]:
        """None: nothing yet. The other ranks wait for that in a collective, which ends with an error after the timeout of its group."""
        assert self._client is not None
        began = time.monotonic()
        while self._island.size == 1 or time.monotonic() < began + SHARE_SECONDS:
            self._pass_on_drain()
            event = self._client.next(POLL_SECONDS)
            if event is not None:
                return event
            self._progress.show()
        return None

    def _message_of(self, event: Event) -> Dict[str, Any]:
        """For all ranks. They decide by rank 0's signal whether a restart is followed."""
        message: Dict[str, Any] = {**message_of(event), "drains": self.signals.drain}
        if event.kind is EventKind.END:
            message["version"] = int(self.status().get("version", 0))
        return message

    def _serve(self, message: Dict[str, Any], event: Optional[Event]) -> None:
        try:
            answer = self._replica.serve(message, event)
        except BaseException as failure:
            self._answer(outcome=Outcome.FAILED, message=failure_message(failure))
            raise
        self._answer(**answer)

    def _joined(self) -> None:
        if self._client is not None:
            self.run = self._client.run()
        self.run = self._island.share(self.run)
        self._replica.joined(self.run)
        self._progress.say(f"joined run {self.run.get('run', '')} as {self.run.get('worker', '')}".rstrip())
        self._answer()

    def _ended(self, message: Dict[str, Any]) -> None:
        reason = EndReason(message["end_reason"])
        if reason is EndReason.FAILED and message["end_code"] == Cancelled.code:  # stop() while a step was being answered
            reason = EndReason.STOPPED
            message = {**message, "end_reason": int(reason)}
        if self._client is not None:
            self._client.close()
        if reason is EndReason.RESTART and not message["drains"]:
            self._progress.say(f"{message['text']}; joining again")
            self._asked = False
            self._open()
            return
        self.end = message
        self.signals.remove()  # there is nothing left to drain: a signal is the caller's again
        if reason is EndReason.FAILED:
            raise error_of(message["end_code"], message["text"])
        own = reason is not EndReason.FINISHED and self._begun
        self._progress.say(message["text"] + (". The model has this worker's own values; atoll.pull has the published ones" if own else ""))

    def _answer(self, **fields: Any) -> None:
        if self._client is not None:
            self._client.answer(**fields)

    def _pass_on_drain(self) -> None:
        if self.signals.drain and not self._asked and self._client is not None and not self._client.closed:
            self._asked = True
            if self._begun:
                self._progress.say("draining: pushing the steps done so far" + AGAIN.get(self.signals.number or 0, ""))
            else:
                self._progress.say("leaving before the first step")
            self._client.drain()


def ended_reason(message: Optional[Dict[str, Any]]) -> Tuple[Optional[EndReason], str]:
    return (EndReason(message["end_reason"]), message["text"]) if message else (None, "")


def context_ended() -> FailedPrecondition:
    return FailedPrecondition("the context of this run has ended: call atoll.join again, with the same name and state directory")
