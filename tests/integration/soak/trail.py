"""What the soak has left in logs, events and round records, and what of it may not be."""
import collections
import json

from besieged import DEADLINE_S

SLACK_S = 4  # a round is looked at, merged and committed on a busy machine
FOLDED_WITHIN = 4  # versions: a late contribution counts in one of the next rounds


class Records:
    def __init__(self, run):
        self.events = run.events()
        self.contributed = run.contributed()
        self.accepted = []  # (worker, base, time)
        self.not_json = 0
        for line in (run.folder / "coordinator.log").read_text(errors="replace").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                self.not_json += 1
                continue
            if entry.get("message") == "contribution accepted":
                self.accepted.append((entry["worker"], int(entry["base"]), entry["time"]))
        self.closed = [event for event in self.events if event["kind"] == "ROUND_CLOSED"]
        self.verdicts = collections.Counter(line["verdict"] for line in run.lines("verify", "--json"))
        self.restored_versions = {int(event["version"]) for event in self.events
                                  if "RESTORED" in event["kind"] and event.get("version")}
        self.evicted = collections.defaultdict(list)  # name -> versions that were the head then
        head = 0
        for event in self.events:
            if event["kind"] == "ROUND_CLOSED":
                head = int(event["round"]["version"])
            if event["kind"] in ("WORKER_EVICTED", "WORKER_BANNED", "WORKER_LOST", "WORKER_LEFT"):
                self.evicted[event.get("worker")].append(head)

    def complaints(self, run):
        return (self.lost_contributions() + self.long_rounds(run) + self.head_went_back() +
                ([f"verify says {dict(self.verdicts)}"] if set(self.verdicts) - {"EQUAL", "NOT_KEPT"} or not self.verdicts else []) +
                ([f"{self.not_json} lines of the coordinator's log are not JSON"] if self.not_json else []))

    def lost_contributions(self):
        """Accepted, and in no round's record."""
        if not self.contributed:
            return ["there is no round record"]
        newest, oldest = max(self.contributed), min(self.contributed)
        complaints = []
        for worker, base, at in self.accepted:
            # Of the round that is open, and of versions that are not kept, there is no record.
            if base >= newest or base + 1 < oldest:
                continue
            later = range(base + 1, base + 1 + FOLDED_WITHIN)
            counted = any(worker in self.contributed.get(version, ()) for version in later)
            evicted = any(abs(version - base) <= 1 for version in self.evicted[worker])
            if not counted and not evicted and not any(version in self.restored_versions for version in later):
                complaints.append(f"the contribution of {worker} to version {base}, accepted at {at}, is in no round: "
                                  f"{ {v: sorted(self.contributed.get(v, ())) for v in later} }")
        return complaints[:5]

    def long_rounds(self, run):
        complaints = []
        for event in self.closed:
            end, seconds = int(event["unix_nanos"]) / 1e9, event["round"].get("open_seconds", 0)
            excused = sum(max(0.0, min(end, until) - max(end - seconds, begin)) for begin, until in run.absences)
            if seconds > DEADLINE_S + SLACK_S + excused:
                complaints.append(f"version {event['round']['version']} took {seconds:.1f} s: {event['round']}; the deadline is "
                                  f"{DEADLINE_S} s, and {excused:.1f} s are excused")
        return complaints[:5]

    def head_went_back(self):
        versions = [int(event["round"]["version"]) for event in self.closed]
        return [f"the head went from {a} to {b}" for a, b in zip(versions, versions[1:]) if b <= a][:5]

    def summary(self):
        longest = max((event["round"].get("open_seconds", 0) for event in self.closed), default=0)
        return (f"rounds    {len(self.closed)}, the longest open for {longest:.1f} s of {DEADLINE_S}\n"
                f"accepted  {len(self.accepted)} contributions, none lost; verify: {dict(self.verdicts)}")
