"""What the soak has left in logs, events and round records, and what of it may not be."""
import collections
import datetime
import json

from besieged import DEADLINE_S, STALENESS

SLACK_S = 4  # a round is looked at, merged and committed on a busy machine


class Records:
    """Taken several times in a long run, since old round records are dropped; each adds to those before."""

    def __init__(self):
        self.events = {}       # sequence number -> event
        self.contributed = {}  # version -> names
        self.verdicts = {}     # version -> the best that was said of it
        self.accepted = []     # (worker, base, seconds since 1970)
        self.folded = 0        # of them, those that came late and count in the next round
        self.not_json = 0
        self.longest = 0.0     # seconds that a round was open, without those that are excused
        self.forged = 0        # confirmations that the coordinator could not believe; nobody forges any here

    def take(self, run):
        self.events.update((int(event["sequence"]), event) for event in run.events())
        for version, names in run.contributed().items():
            self.contributed.setdefault(version, set()).update(names)
        for line in run.lines("verify", "--json"):
            version = int(line["version"])
            if self.verdicts.get(version) != "EQUAL" or line["verdict"] != "NOT_KEPT":
                self.verdicts[version] = line["verdict"]

    def read_log(self, run):
        for line in (run.folder / "coordinator.log").read_text(errors="replace").splitlines():
            try:
                entry = json.loads(line)
            except ValueError:
                self.not_json += 1
                continue
            self.forged += "not signed by its worker's key" in entry.get("message", "")
            if entry.get("message") == "contribution accepted":
                at = datetime.datetime.fromisoformat(entry["time"].replace("Z", "+00:00")).timestamp()
                self.accepted.append((entry["worker"], int(entry["base"]), at))

    def of_kind(self, kind):
        return [event for _, event in sorted(self.events.items()) if event["kind"] == kind]

    def complaints(self, run):
        """Once the run is stopped: no round is open any more, and every contribution must be in the record of one."""
        self.read_log(run)
        return (([f"{self.forged} confirmations of honest workers were taken for forged"] if self.forged else []) +
                self.lost_contributions() + self.unproved_versions() + self.long_rounds(run) + self.head_went_back() +
                self.launched_that_ended(run) +
                ([f"{self.not_json} lines of the coordinator's log are not JSON"] if self.not_json else []))

    def lost_contributions(self):
        """Accepted, and neither in the round of its base nor, come late, in one of the next: whoever sent it, and whatever
        became of the worker. Only a restore drops the contributions that came before it."""
        if not self.contributed:
            return ["there is no round record"]
        restored = {int(event["version"]): int(event["unix_nanos"]) / 1e9 for event in self.of_kind("RUN_RESTORED")}
        complaints = []
        for worker, base, at in self.accepted:
            rounds = range(base + 1, base + 2 + STALENESS)
            counted = [version for version in rounds if worker in self.contributed.get(version, ())]
            if counted:
                self.folded += counted[0] > base + 1
                continue
            if not any(at <= restored.get(version, 0) for version in rounds):
                complaints.append(f"the contribution of {worker} to version {base}, accepted at {at}, is in no round: "
                                  f"{ {v: sorted(self.contributed.get(v, ())) for v in rounds} }")
        return complaints[:5] + ([f"... {len(complaints)} in all"] if len(complaints) > 5 else [])

    def unproved_versions(self):
        """Each was recomputed bit by bit, but for the seed."""
        newest = max(self.contributed, default=0)
        wrong = {version: self.verdicts.get(version, "not looked at") for version in range(1, newest + 1)
                 if self.verdicts.get(version) != "EQUAL"}
        return [f"verify has not shown these versions to be equal: {dict(list(wrong.items())[:10])}"] if wrong else []

    def long_rounds(self, run):
        complaints = []
        for event in self.of_kind("ROUND_CLOSED"):
            end, seconds = int(event["unix_nanos"]) / 1e9, event["round"].get("open_seconds", 0)
            excused = sum(max(0.0, min(end, until) - max(end - seconds, begin)) for begin, until in run.absences)
            self.longest = max(self.longest, seconds - excused)
            if seconds > DEADLINE_S + SLACK_S + excused:
                complaints.append(f"version {event['round']['version']} took {seconds:.1f} s: {event['round']}; the deadline is "
                                  f"{DEADLINE_S} s, and {excused:.1f} s are excused")
        return complaints[:5]

    def head_went_back(self):
        versions = [int(event["round"]["version"]) for event in self.of_kind("ROUND_CLOSED")]
        return [f"the head went from {a} to {b}" for a, b in zip(versions, versions[1:]) if b <= a][:5]

    def launched_that_ended(self, run):
        """The launcher's workers end when they are scaled away or the coordinator ends (it stops them, and they end in time),
        when they are killed here, and with the run."""
        stopped = min((int(event["sequence"]) for event in self.of_kind("RUN_STOPPED")), default=None)
        killed, complaints = run.killed.copy(), []
        for event in self.of_kind("WORKER_EXITED"):
            message, name = event["message"], event["worker"]
            if " was stopped: " in message and "did not end within" not in message:
                continue
            if stopped is not None and int(event["sequence"]) > stopped and " finished: exit code 0" in message:
                continue
            if "killed by SIGKILL" in message and killed[name] > 0:
                killed[name] -= 1
                continue
            complaints.append(f"a worker of the launcher ended unasked: {message}")
        return complaints[:5]

    def summary(self):
        closed = self.of_kind("ROUND_CLOSED")
        exits = collections.Counter(event["message"].split(": ")[0].split(" ", 1)[1] for event in self.of_kind("WORKER_EXITED"))
        return (f"rounds    {len(closed)}, the longest open for {self.longest:.1f} s of {DEADLINE_S} beside pauses and absences\n"
                f"accepted  {len(self.accepted)} contributions, looked for in {len(self.contributed)} round records, "
                f"{self.folded} folded into a later round; verify: {dict(collections.Counter(self.verdicts.values()))}\n"
                f"launcher  its workers: {dict(exits)}")
