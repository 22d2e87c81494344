"""The commands that an operator gives during the soak, in turn, each about somebody or something that is there."""
import collections
import json
import os
import subprocess
import time

from besieged import DRAINED, EXIT_BANNED

EVERY_S = (0.3, 1.2)
AWAY = ("left", "lost", "drained")  # states of workers that can be forgotten


class Repertoire:
    def __init__(self, run, rng):
        self.run, self.rng = run, rng
        self.commands = {name[3:]: getattr(self, name) for name in dir(type(self)) if name.startswith("do_")}
        self.worked = collections.Counter()
        self.failed = collections.Counter()
        self.last_failure = {}
        self.left = []
        self.checkpoints = 0
        self.next = time.monotonic()

    def tick(self):
        if time.monotonic() < self.next:
            return
        if not self.left:
            self.left = self.rng.sample(sorted(self.commands), len(self.commands))
        name = self.left.pop()
        if self.commands[name]():
            self.worked[name] += 1
        else:
            self.failed[name] += 1
            self.last_failure[name] = self.run.complaint
            if not self.worked[name]:
                self.left.insert(0, name)  # again, later in this turn
        self.next = time.monotonic() + self.rng.uniform(*EVERY_S)

    def complete(self):
        return all(self.worked[name] for name in self.commands)

    def complaints(self):
        missing = self.run.given.missing(self.run.programs / "atollctl")
        return [f"'{name}' never worked in {self.failed[name]} attempts: {self.last_failure.get(name)}"
                for name in self.commands if not self.worked[name]] + [
                    f"'atollctl {command}' has no place in the soak" for command in missing]

    def gives(self, *command):
        return self.run.ctl(*command) is not None

    def someone(self):
        names = self.run.running()
        return self.rng.choice(names) if names else None

    def to_someone(self, command, *more):
        """Of `workers COMMAND NAME`; the name, or None."""
        name = self.someone()
        return name if name is not None and self.gives("workers", command, name, *more) else None

    # Orders to workers.

    def do_drain(self):
        name = self.to_someone("drain", "--reason", "soak")
        if name:
            self.run.tell(name, *DRAINED)
        return name is not None

    def do_drain_at_once(self):
        name = self.to_someone("drain", "--at-once")
        if name:
            self.run.tell(name, *DRAINED)
        return name is not None

    def do_restart(self):
        return self.to_someone("restart") is not None

    def do_evict(self):
        return self.to_someone("evict") is not None

    def do_resync(self):
        return self.to_someone("resync") is not None

    def do_ban(self):
        if self.run.banned:
            return True
        name = self.to_someone("ban")
        if name:
            self.run.tell(name, EXIT_BANNED)
            self.run.banned.add(name)
        return name is not None

    def do_unban(self):
        # Once it has heard of it, and its end was looked at.
        gone = [name for name in self.run.banned if name not in self.run.told]
        if not gone or not self.gives("workers", "unban", gone[0]):
            return False
        self.run.banned.discard(gone[0])
        self.run.start_worker(gone[0], self.run.tokens)
        return True

    def do_forget(self):
        """One that is away: frozen ones that lost their lease come back, and so do those that the launcher starts again."""
        away = [name for name, worker in (self.run.workers() or {}).items()
                if worker["state"] in AWAY and not worker.get("banned")]
        if away:
            return self.gives("workers", "forget", self.rng.choice(away))
        self.run.complaint = "no worker is away"
        self.gives("workers", "scale", "2" if "w2" in self.run.launched() else "3")
        return False

    def do_describe(self):
        return self.to_someone("describe") is not None

    # The launcher's workers.

    def do_add(self):
        return self.gives("workers", "add", "1")

    def do_scale(self):
        return self.gives("workers", "scale", str(self.rng.choice((1, 2, 3)))) and self.gives("workers", "scale", "2")

    def do_launcher(self):
        return self.gives("launcher")

    # The run.

    def do_pause_and_resume(self):
        begin = time.time()
        paused = self.gives("run", "pause", "--reason", "soak")
        if paused:
            time.sleep(self.rng.uniform(0.2, 1))
        resumed = self.gives("run", "resume")
        self.run.absences.append((begin, time.time() + 1))
        return paused and resumed

    def do_close_round(self):
        return self.gives("run", "close-round")

    def do_config_set(self):
        return self.gives("config", "set", f"inner.steps={self.rng.randint(20, 60)}",
                          f"outer.learning_rate={self.rng.choice((0.4, 0.5, 0.6))}")

    def do_config_show(self):
        return self.gives("config", "show") and self.gives("config", "history")

    def do_config_of_a_file(self):
        file = str(self.run.folder / "run.yaml")
        return (self.gives("config", "validate", file) and self.gives("config", "explain") and
                self.gives("plan", file, "--step-ms", "10"))

    def do_extend(self):
        return self.gives("run", "extend", "50", "--dry-run") and self.gives("run", "extend", "50", "--yes")

    def do_reset_data(self):
        return self.gives("run", "reset-data", "--reason", "soak")

    def do_tokens(self):
        file = self.run.folder / "observer.token"
        file.unlink(missing_ok=True)
        self.run.credentials = ["--token-file", self.run.folder / "coordinator/access/admin.token"]
        try:
            if not self.gives("tokens", "create", "--role", "observer", "--name", "soak", "--out", str(file)):
                return False
            text = self.run.ctl("tokens", "list", "--json")
            live = [token["id"] for token in json.loads(text or "{}").get("tokens", [])
                    if token["name"] == "soak" and token.get("revoked_unix_nanos", "0") == "0"]
            return bool(live) and all(self.gives("tokens", "revoke", token) for token in live)
        finally:
            self.run.credentials = ()

    # Checkpoints, and proof.

    def do_checkpoint_create_and_delete(self):
        self.checkpoints += 1
        name = f"soak-{self.checkpoints}"
        return self.gives("checkpoint", "create", name) and self.gives("checkpoint", "list") and self.gives("checkpoint", "delete",
                                                                                                             name, "--yes")

    def do_checkpoint_restore(self):
        self.checkpoints += 1
        name = f"back-{self.checkpoints}"
        if not self.gives("checkpoint", "create", name):
            return False
        begin = time.time()
        restored = self.gives("checkpoint", "restore", name, "--yes")
        self.run.absences.append((begin, time.time() + 5))
        return self.gives("checkpoint", "delete", name, "--yes") and restored

    def do_verify(self):
        return self.gives("verify", "--version", str(max(1, self.run.head() - 1)))

    def do_verify_confirmations(self):
        return self.gives("verify", "--confirmations")

    def do_generate(self):
        """The command of the worker's program that asks the coordinator."""
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1")
        done = subprocess.run([self.run.programs / "atoll-worker", "generate", "--coordinator", self.run.data, "--prompt", "the quick",
                               "--tokens", "8", "--seed", "5", "--threads", "1", "--device", "cpu"], capture_output=True,
                              timeout=60, check=False, env=environment)
        self.run.complaint = done.stderr.decode()
        return done.returncode == 0 and done.stdout.startswith(b"the quick")

    def do_export(self):
        file = self.run.folder / "model.safetensors"
        file.unlink(missing_ok=True)
        return self.gives("export", "--out", str(file)) and file.stat().st_size > 1000

    # Looking.

    def do_status(self):
        text = self.run.ctl("status", "--json", "--history", "20")
        return text is not None and bool(json.loads(text)) and self.gives("run", "status")

    def do_doctor(self):
        text = self.run.ctl("doctor", "--json")
        checks = json.loads(text) if text else []
        verdicts = {check["name"]: check["verdict"] for check in (checks if isinstance(checks, list) else checks["checks"])}
        return verdicts.get("data port") == "ok" and verdicts.get("admin port") == "ok"

    def do_shell(self):
        done = subprocess.run([self.run.programs / "atollctl", "field", "a.b"], input=b'{"a": {"b": 7}}', capture_output=True,
                              timeout=30, check=False)
        self.run.complaint = done.stderr.decode()
        self.run.given.note(["field"] if done.stdout == b"7\n" else [])
        return done.stdout == b"7\n" and self.gives("completion", "bash")

    def do_workers(self):
        return self.gives("workers") and self.gives("workers", "list", "--all", "--json")

    def do_events(self):
        return self.gives("events", "--json")

    def do_metrics(self):
        return self.gives("metrics") and self.gives("metrics", "export", "--format", "csv", "--out",
                                                    str(self.run.folder / "metrics.csv"))

    def do_compare(self):
        """The run as it is now, and as it was a moment ago."""
        file = str(self.run.folder / "earlier.jsonl")
        if not self.gives("metrics", "export", "--format", "jsonl", "--out", file):
            return False
        text = self.run.ctl("compare", f"now={self.run.admin}", f"earlier={file}", "--axis", "rounds", "--loss", "training", "--json")
        curves = json.loads(text)["runs"] if text else []
        return {curve["name"] for curve in curves} == {"now", "earlier"} and all(curve["points"] for curve in curves)
