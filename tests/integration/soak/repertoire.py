"""The commands that an operator gives during the soak, in turn, each about somebody or something that is there."""
import collections
import json
import time

from besieged import DRAINED, EXIT_BANNED

EVERY_S = (0.3, 1.2)


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
        return [f"'{name}' never worked in {self.failed[name]} attempts: {self.last_failure.get(name)}"
                for name in self.commands if not self.worked[name]]

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
        name = self.to_someone("evict")
        self.run.evicted.append((name, time.time()))
        return name is not None

    def do_resync(self):
        return self.to_someone("resync") is not None

    def do_ban(self):
        if self.run.banned:
            return True
        name = self.to_someone("ban")
        if name:
            self.run.evicted.append((name, time.time()))
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
        return self.gives("config", "set", f"inner.steps={self.rng.randint(5, 20)}",
                          f"outer.learning_rate={self.rng.choice((0.4, 0.5, 0.6))}")

    def do_config_show(self):
        return self.gives("config", "show") and self.gives("config", "history")

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
        self.run.restored.append((begin, time.time()))
        self.run.absences.append((begin, time.time() + 5))
        return self.gives("checkpoint", "delete", name, "--yes") and restored

    def do_verify(self):
        return self.gives("verify", "--version", str(max(1, self.run.head() - 1)))

    def do_export(self):
        file = self.run.folder / "model.safetensors"
        file.unlink(missing_ok=True)
        return self.gives("export", "--out", str(file)) and file.stat().st_size > 1000

    # Looking.

    def do_status(self):
        text = self.run.ctl("status", "--json", "--history", "20")
        return text is not None and bool(json.loads(text))

    def do_workers(self):
        return self.gives("workers") and self.gives("workers", "list", "--all", "--json")

    def do_events(self):
        return self.gives("events", "--json")

    def do_metrics(self):
        return self.gives("metrics") and self.gives("metrics", "export", "--format", "csv", "--out",
                                                    str(self.run.folder / "metrics.csv"))
