#!/usr/bin/env python3
"""atollctl with a real coordinator, in every way that it is used wrongly: what it says, what it exits with, that it ends.

Readers that go away (`atollctl watch | head -1`), a full disk behind standard output, Ctrl-C in every command that waits, a
coordinator that is away or frozen, unknown workers, checkpoints and tokens, files that are folders, missing or not writable.

Usage: wrong_input_test.py BIN_DIR. Exit codes: 0 all of it, 1 not (the complaints are printed).
"""
import os
import signal
import subprocess
import sys
import time

from served_run import ServedRun, run_parts
from tiny_run import CONFIG

PROMPT_S = 8  # what should end at once ends in this time on a busy machine
AWAY = "127.0.0.1:1"
# Everything that prints and only looks.
LOOKS = [["status"], ["status", "--json"], ["status", "--summary"], ["run", "status"], ["watch"], ["watch", "--json"],
         ["events"], ["events", "--json"], ["events", "--follow"], ["metrics"], ["metrics", "export"],
         ["metrics", "export", "--format", "jsonl"], ["workers"], ["workers", "list", "--all", "--json"], ["launcher"],
         ["config", "show"], ["config", "history"], ["checkpoint", "list"], ["verify"]]
LOCAL = [["config", "explain"], ["config", "explain", "--markdown"], ["completion", "bash"], ["--help"], ["workers", "--help"]]
ORDERS = [["workers", order, "w9"] for order in ("drain", "restart", "evict", "resync", "unban", "describe")]
CHANGES = [*ORDERS, ["workers", "ban", "w9"], ["workers", "add", "1"], ["workers", "scale", "3"], ["run", "pause"], ["run", "resume"],
           ["run", "stop", "--yes"], ["run", "close-round"], ["config", "set", "round.deadline_s=120"],
           ["checkpoint", "create"], ["checkpoint", "restore", "c1", "--yes"], ["checkpoint", "delete", "c1", "--yes"],
           ["tokens", "create", "--role", "admin", "--name", "ann"], ["tokens", "list"], ["tokens", "revoke", "00000000"]]

LARGE = """run: {{name: large, workers: 2, rounds: 4}}
model: {{gpt: {{layers: {layers}, heads: 8, width: {width}, context: 16, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: 2, learning_rate: 0.001, batch: 1}}
limits: {{contribution_budget_mib: {budget}}}
"""


class Test(ServedRun):
    def __init__(self, programs, folder):
        super().__init__(programs, folder, CONFIG)

    def start(self, arguments, where=None, **more):
        where = self.there if where is None else where
        return subprocess.Popen([self.programs / "atollctl", *where, *arguments], stdin=subprocess.DEVNULL, text=True,
                                stderr=subprocess.PIPE, cwd=self.folder, **more)

    def complain(self, arguments, what):
        self.complaints.append(f"atollctl {' '.join(arguments)}: {what}")

    def judge(self, process, arguments, how, codes, words=(), within=PROMPT_S):
        """It must end by itself in this time, with one of these codes and these words on standard error."""
        try:
            said = process.communicate(timeout=within)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.complain(arguments, f"{how}: still runs after {within} s")
            return
        if process.returncode not in codes:
            self.complain(arguments, f"{how}: exit code {process.returncode}, expected {codes}: {said.strip()}")
        for word in words:
            if word not in said:
                self.complain(arguments, f"{how}: does not say '{word}': {said.strip()}")

    def expect(self, arguments, codes, words=(), where=None, how="run"):
        self.judge(self.start(arguments, where, stdout=subprocess.DEVNULL), arguments, how, codes, words)

    def readers_that_go(self):
        for arguments in (["watch", "--line-interval", "600"], ["watch", "--json", "--line-interval", "600"],
                          ["events", "--follow"], ["events", "--follow", "--json"]):
            process = self.start(arguments, stdout=subprocess.PIPE)
            if not process.stdout.readline():
                self.complain(arguments, f"printed nothing: {process.stderr.read()}")
            process.stdout.close()
            process.stdout = None
            self.judge(process, arguments, "after its reader went away", (0, -signal.SIGPIPE))
        for arguments in [*LOOKS, *LOCAL]:
            reader, writer = os.pipe()
            os.close(reader)
            process = self.start(arguments, stdout=writer)
            os.close(writer)
            self.judge(process, arguments, "without a reader", (0, 5, -signal.SIGPIPE))

    def full_disk(self):
        with open("/dev/full", "wb") as full:
            for arguments in [*LOOKS, *LOCAL]:
                if "--follow" in arguments:
                    continue
                codes, words = (4,), ("standard output",)
                if arguments[:2] in (["checkpoint", "list"], ["metrics", "export"]):
                    codes, words = (0, 4), ()  # there may be nothing to show yet
                if arguments[0] == "verify":
                    codes, words = (5,), ("no version yet",)
                self.judge(self.start(arguments, stdout=full), arguments, "on a full disk", codes, words)

    def begin(self, arguments):
        """Once it has printed its first line it is sure to have begun; its output goes on into a pipe that takes it."""
        process = self.start(arguments, stdout=subprocess.PIPE)
        if not process.stdout.readline():
            self.complain(arguments, "printed nothing")
        return process

    def interrupt(self, arguments, codes, how, where=None):
        if where is None:
            process = self.begin(arguments)
        else:
            process = self.start(arguments, where, stdout=subprocess.DEVNULL)
            time.sleep(2)
        if process.poll() is not None:
            self.complain(arguments, f"{how}: had ended before Ctrl-C with {process.returncode}: {process.stderr.read()}")
            return
        process.send_signal(signal.SIGINT)
        self.judge(process, arguments, how, codes)

    def ctrl_c(self):
        killed = -signal.SIGINT
        self.interrupt(["watch"], (0,), "Ctrl-C")
        self.interrupt(["watch", "--until-finished"], (130,), "Ctrl-C")
        self.interrupt(["events", "--follow"], (killed, 130), "Ctrl-C")
        away = ["--admin", AWAY, "--coordinator", AWAY, "--timeout", "60"]
        for arguments in (["watch"], ["status"], ["events"], ["export"], ["run", "pause"]):
            self.interrupt(arguments, (killed, 130), "Ctrl-C while the coordinator is away", away)

    def frozen_coordinator(self):
        watching = self.begin(["watch"])
        self.coordinator.send_signal(signal.SIGSTOP)
        try:
            # It must not wait for ever for an answer to a change.
            changing = self.start(["--timeout", "5", "run", "pause"], stdout=subprocess.DEVNULL)
            self.expect(["--timeout", "1", "status"], (3,), ("no coordinator answers",), how="frozen coordinator")
            self.interrupt(["--timeout", "60", "status"], (-signal.SIGINT,), "Ctrl-C, frozen coordinator", self.there)
            watching.send_signal(signal.SIGINT)
            self.judge(watching, ["watch"], "Ctrl-C, frozen coordinator", (0,))
            self.judge(changing, ["run", "pause"], "frozen coordinator", (3,), ("no coordinator answers",), within=40)
        finally:
            self.coordinator.send_signal(signal.SIGCONT)

    def away(self):
        where = ["--admin", AWAY, "--coordinator", AWAY, "--timeout", "0.3"]
        running = []
        for arguments in [*LOOKS, *CHANGES, ["export"]]:
            running.append((self.start(arguments, where, stdout=subprocess.DEVNULL), arguments))
            if len(running) == 4:
                for process, given in running:
                    self.judge(process, given, "coordinator away", (3,), (f"no coordinator answers on {AWAY}",))
                running = []
        for process, given in running:
            self.judge(process, given, "coordinator away", (3,), (f"no coordinator answers on {AWAY}",))
        self.expect(["status"], (2,), ("HOST:PORT",), ["--admin", "nonsense"])
        self.expect(["status"], (2,), ("HOST:PORT",), ["--admin", "127.0.0.1:99999"])

    def unknown_names(self):
        for arguments in ORDERS:
            self.expect(arguments, (5,), ("w9",))
        self.expect(["workers", "drain", "../../etc"], (2, 5), ("../../etc",))
        self.expect(["workers", "add", "1"], (5,), ("--launcher",))
        # On the wire 0 is no condition at all.
        self.expect(["config", "set", "--expect", "0", "round.grace_s=1"], (2,), ("--expect",))
        self.expect(["checkpoint", "restore", "c1", "--yes"], (5,), ())
        self.expect(["checkpoint", "restore", "c1"], (2,), ("--yes",))
        self.expect(["checkpoint", "delete", "c1", "--yes"], (5,), ("c1",))
        self.expect(["checkpoint", "delete", "c1"], (2,), ("--yes",))
        self.expect(["run", "stop"], (2,), ("--yes",))
        self.expect(["run", "resume"], (5,), ())
        self.expect(["run", "close-round"], (5,), ())
        self.expect(["tokens", "revoke", "00000000"], (5,), ("00000000",))
        self.expect(["tokens", "create", "--role", "worker"], (2,), ("--name",))
        self.expect(["tokens", "create", "--role", "admin", "--name", "ann", "--expires", "soon"], (2,), ("90d",))
        self.expect(["config", "set", "round.deadline_s"], (2,), ("PATH=VALUE",))
        self.expect(["config", "set", "round.quorun=1"], (2,), ("quorum",))
        self.expect(["config", "set", "round.quorum=7"], (2,), ("round.quorum",))
        self.expect(["config", "set", "model.gpt.layers=4"], (5,), ("model.gpt.layers",))
        self.expect(["export"], (5,), ("no parameters yet",))
        self.expect(["verify", "--version", "41"], (5,), ("no version yet",))

    def bad_files(self):
        (self.folder / "bad.yaml").write_text("run: {nme: x}")
        (self.folder / "binary.yaml").write_bytes(bytes(range(256)) * 64)
        for command in (["config", "validate"], ["config", "show"], ["plan"]):
            self.expect([*command, "."], (6,), ("Is a directory",))
            self.expect([*command, "absent.yaml"], (6,), ("absent.yaml",))
            self.expect([*command, "bad.yaml"], (2,), ("nme",))
            self.expect([*command, "binary.yaml"], (2,), ("binary.yaml",))
        for name, layers, width, words in (("tight", 4, 512, ("limits.contribution_budget_mib", "at least")),
                                           ("endless", 1024, 65536, ("model.gpt",))):
            (self.folder / f"{name}.yaml").write_text(LARGE.format(layers=layers, width=width, budget=1))
            for command in (["config", "validate"], ["plan"]):
                self.expect([*command, f"{name}.yaml"], (2,), words)
        self.expect(["doctor", "absent.yaml"], (1,), ())
        self.expect(["export", "--out", "."], (6,), ("folder",))
        self.expect(["export", "--out", "absent/model"], (6,), ("absent/model",))
        self.expect(["metrics", "export", "--out", "absent/m.csv"], (6,), ("absent/m.csv",))
        self.expect(["metrics", "export", "--out", "data"], (6,), ("data",))
        self.expect(["status"], (6,), ("absent.token",), [*self.there[:4], "--token-file", "absent.token"])
        self.expect(["status"], (6,), ("absent.pem",), [*self.there[:4], "--tls-ca", "absent.pem"])

    def model_of_another_machine(self):
        """Terabytes: `plan` says so, a coordinator does not begin."""
        (self.folder / "huge.yaml").write_text(LARGE.format(layers=64, width=16384, budget=1 << 20))
        self.expect(["plan", "huge.yaml"], (0,), ())
        done = subprocess.run([self.programs / "atoll-coordinator", "--config", "huge.yaml", "--data-dir", "huge"], cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 2 or "model.gpt" not in done.stderr or (self.folder / "huge").exists():
            self.complaints.append(f"a coordinator of terabytes ended with {done.returncode}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(run_parts("atoll-wrong-", Test, (
        Test.unknown_names, Test.bad_files, Test.model_of_another_machine, Test.away, Test.readers_that_go, Test.full_disk, Test.ctrl_c,
        Test.frozen_coordinator)))
