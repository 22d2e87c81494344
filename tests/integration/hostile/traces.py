"""Calls that only look: they leave nothing behind, and keep no worker out, however many they are."""
import threading
import time

import grpc

import attacks
import wire
from coordinator import Coordinator, GoodWorker, call

Code = grpc.StatusCode
SERVED_WITHIN_S = 5
WORKERS = 5  # that join while observers are over their bound


def series_about(coordinator, prefix):
    """Names of metric series in which a name with this prefix stands."""
    return [name for name in coordinator.counters() if prefix in name]


def observers(folder, programs):
    """999 callers that only look, more than there are places for workers: a worker still joins, and they leave nothing."""
    coordinator = Coordinator(folder, programs, joins_per_s=5000, max_workers=20)
    try:
        events = int(coordinator.status().get("last_event_sequence", 0))
        began = time.monotonic()
        codes = attacks.join_flood(coordinator, 999)
        took = time.monotonic() - began
        try:
            joined = time.monotonic()
            good = GoodWorker(coordinator, "good", seconds=SERVED_WITHIN_S)
            good.heartbeat()
            waited = f"joined in {time.monotonic() - joined:.2f} s"
        except grpc.RpcError as error:
            good, waited = None, f"was refused: {error.details()}"
        names = [worker["name"] for worker in coordinator.atollctl("workers", "list", "--all").get("workers", [])]
        more = int(coordinator.status().get("last_event_sequence", 0)) - events
        series = series_about(coordinator, "flood-")
        print(f"{codes.get(Code.OK, 0)} of 999 observers in {took:.1f} s; then a worker {waited}; {len(names)} names, "
              f"{more} events more, {len(series)} metric series of observers")
        return (good is not None and codes.get(Code.OK, 0) > 500 and names == ["good"] and more <= 2 and not series and
                bool(series_about(coordinator, '"good"')))
    finally:
        coordinator.stop()


class ObserverFlood:
    """Observers that join without a pause, from the address that the workers have too."""

    def __init__(self, coordinator):
        self.coordinator, self.codes, self.stopped = coordinator, {}, threading.Event()
        self.thread = threading.Thread(target=self._go_on)
        self.thread.start()

    def _go_on(self):
        while not self.stopped.is_set():
            for code, count in attacks.join_flood(self.coordinator, 300).items():
                self.codes[code] = self.codes.get(code, 0) + count

    def refused(self):
        return self.codes.get(Code.RESOURCE_EXHAUSTED, 0)

    def stop(self):
        self.stopped.set()
        self.thread.join()


def observers_over_their_bound(folder, programs):
    """More observers a second than limits.joins_per_s allows: they are refused, and each worker joins at its first call."""
    coordinator = Coordinator(folder, programs, joins_per_s=20, max_workers=20)
    flood = ObserverFlood(coordinator)
    refused_workers = []
    try:
        coordinator.wait_for(lambda: flood.refused() > 0, 60, "observers over their bound to be refused")
        for i in range(WORKERS):
            before = flood.refused()
            coordinator.wait_for(lambda: flood.refused() > before, 60, "more observers to be refused")
            try:
                GoodWorker(coordinator, f"good-{i}", seconds=0).heartbeat()
            except grpc.RpcError as error:
                refused_workers.append(f"good-{i}: {error.code()} {error.details()}")
        flood.stop()
        names = sorted(worker["name"] for worker in coordinator.atollctl("workers", "list", "--all").get("workers", []))
        counted = coordinator.counters().get('atoll_calls_refused_total{reason="over_budget"}', 0)
        series = series_about(coordinator, "flood-")
        print(f"{flood.codes.get(Code.OK, 0)} observers let in, {flood.refused()} refused, {counted:.0f} counted; "
              f"workers: {names}, refused: {refused_workers}; {len(series)} metric series of observers")
        return (not refused_workers and names == [f"good-{i}" for i in range(WORKERS)] and counted >= flood.refused() and
                not series and set(flood.codes) <= {Code.OK, Code.RESOURCE_EXHAUSTED})
    finally:
        flood.stop()
        coordinator.stop()


def files_of(folder):
    """Of a data directory, with sizes and times: a file that came and went changed its folder. The database's own log, which
    tells of its background work, does not count."""
    states = {path: path.stat() for path in folder.rglob("*") if not path.name.startswith("LOG")}
    return {str(path.relative_to(folder)): (state.st_size, state.st_mtime_ns) for path, state in states.items()}


def rests(folder):
    """Nothing is written any more of what came before."""
    before = files_of(folder)
    time.sleep(0.5)
    return files_of(folder) == before


def questions(folder, programs):
    """GetPushStatus of keys that nobody pushed: the answer is that nothing is known, and asking writes and reserves nothing."""
    coordinator = Coordinator(folder, programs)
    try:
        first = GoodWorker(coordinator, "asks-0")
        first.seed()
        first.member = first.join()
        members = [first.member] + [GoodWorker(coordinator, f"asks-{i}").member for i in range(1, 12)]
        first.pull()
        places = [(0, base, 0) for base in (0, 0, 1, 7, 1 << 40, (1 << 64) - 1)] + [(7, 0, 0), (0, 0, 3), (0, 0, (1 << 32) - 1)]
        coordinator.wait_for(lambda: rests(folder / "data"), 60, "the seed to be stored")
        before, reserved = files_of(folder / "data"), coordinator.counters()["atoll_contribution_in_flight_bytes"]
        held, known, asked = coordinator.rss_mib(), 0, 0
        for _ in range(20):
            for member in members:
                for fragment, base, sequence in places:
                    asked += 1
                    request = wire.field(1, member.reference) + wire.field(2, (
                        wire.field(1, fragment) + wire.field(2, base) + wire.field(3, sequence)))
                    known += answers_known(first.channel, request)
        after, reserved_now = files_of(folder / "data"), coordinator.counters()["atoll_contribution_in_flight_bytes"]
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        print(f"{asked} questions about pushes that never came: {known} were known; changed files: {changed}; reserved bytes "
              f"{reserved:.0f} -> {reserved_now:.0f}; {coordinator.rss_mib() - held:.1f} MiB more")
        return known == 0 and not changed and reserved == reserved_now == 0
    finally:
        coordinator.stop()


def answers_known(channel, request):
    """Whether the answer says that something of it is here. A wrong fragment or sequence may be refused."""
    try:
        state = wire.parse(call(channel, "GetPushStatus", request)).get(1, [0])[0]
        return state not in (0, 1, 5)
    except grpc.RpcError as error:
        if error.code() not in (Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION, Code.NOT_FOUND, Code.OUT_OF_RANGE):
            raise
        return False
