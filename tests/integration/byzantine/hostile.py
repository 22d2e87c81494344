#!/usr/bin/env python3
"""Real workers train, and one member among them pushes poison through the data port.

Three real workers and a hostile one (hostile_worker.cc) per attack, with `offenders: strict`; before that the three alone, for
comparison. It must show: the preset is merge.method centered_clip and offenders.ban_after 3; the hostile worker is banned by
rule, with an event that names the evidence, and its process is refused from then on; no honest worker is; the run finishes, and
its validation loss is within 3 % of that of the three alone.

Usage: hostile.py --bin DIR --hostile PROGRAM [--attacks away,noise,nan] [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import argparse
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from real_run import RealRun, judge, tokenize  # noqa: E402  (it lies one folder up)

HONEST, ROUNDS, STEPS, BATCH, CONTEXT = 3, 14, 12, 4, 16
PATIENCE_S = 240


def config(workers):
    # The budget of tokens is the same for the honest ones, whoever joins besides.
    return f"""run: {{name: hostile, workers: {workers}, rounds: {ROUNDS * HONEST // workers}, seed: 3}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: {CONTEXT}, vocabulary: 256}}}}
data: {{tokenizer: bytes, mode: local}}
inner: {{steps: {STEPS}, learning_rate: 0.005, warmup_steps: 10, batch: {BATCH}}}
outer: {{optimizer: nesterov, learning_rate: 0.7, momentum: 0.5}}
codec: {{push: fp32, pull_delta: none}}
offenders: strict
round: {{deadline_s: 6, grace_s: 2, start_workers: {workers}}}
checkpoint: {{shards: 1}}
"""


class Trial:
    def __init__(self, folder, programs, tokens, hostile, attack):
        self.run = RealRun(folder, programs, config(HONEST + (attack is not None)))
        self.run.launch(programs / "atoll-worker", [f"--data={tokens}", "--threads=1", "--device=cpu"], HONEST)
        config_shown = self.run.status()["config"]
        self.strict = (config_shown["merge"]["method"], int(config_shown["offenders"]["ban_after"]))
        self.hostile, self.attack, self.log = None, attack, folder / "hostile.log"
        if attack is not None:
            with open(self.log, "wb") as log:
                self.hostile = subprocess.Popen([hostile, self.run.data, "mallory", attack], stdout=log, stderr=log)

    def finish(self):
        """The validation loss of the last version."""
        self.run.wait_for(lambda: (self.run.status() or {}).get("state") == "RUN_STATE_FINISHED", PATIENCE_S, "the end of the run")
        return self.run.status(history=100)["evaluations"][-1]["loss"]

    def judge(self, complaints):
        try:
            code = self.hostile.wait(60)
        except subprocess.TimeoutExpired:
            complaints.append(f"{self.attack}: the hostile worker goes on")
            return
        if code != 0:
            complaints.append(f"{self.attack}: the hostile worker ended with {code}: {self.log.read_text()[-500:]}")
        bans = [event for event in self.run.events() if event["kind"].endswith("WORKER_BANNED")]
        if [event["worker"] for event in bans] != ["mallory"] or "by rule (offenders.ban_after 3 of 10)" not in bans[0]["message"]:
            complaints.append(f"{self.attack}: banned were {bans}")
        else:
            print(f"{self.attack}: {bans[0]['message']}")
        workers = self.run.workers()
        if [name for name, worker in workers.items() if worker.get("banned")] != ["mallory"]:
            complaints.append(f"{self.attack}: workers say {workers}")

    def end(self):
        if self.hostile is not None and self.hostile.poll() is None:
            self.hostile.kill()
            self.hostile.wait()
        self.run.end()


def measure(folder, programs, hostile, attacks):
    (folder / "text").write_text("".join(f"{n} times the quick brown fox jumps over {n * n} lazy dogs\n" for n in range(3000)))
    tokens = tokenize(programs, folder / "text", folder / "tokens")
    complaints, clean = [], None
    for attack in [None, *attacks]:
        trial = Trial(folder / (attack or "clean"), programs, tokens, hostile, attack)
        try:
            if trial.strict != ("MERGE_METHOD_CENTERED_CLIP", 3):
                complaints.append(f"{attack}: offenders: strict is {trial.strict}")
            loss = trial.finish()
            clean = clean or loss
            print(f"{attack or 'nobody'}: validation loss {loss:.4f}, {100 * (loss / clean - 1):+.1f} %")
            if loss > 1.03 * clean:
                complaints.append(f"{attack}: validation loss {loss}, clean {clean}")
            if attack is not None:
                trial.judge(complaints)
        finally:
            trial.end()
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--hostile", required=True, type=pathlib.Path)
    parser.add_argument("--attacks", default="away,noise,nan")
    parser.add_argument("--keep", action="store_true", help="leave the folders of the runs")
    arguments = parser.parse_args()
    return judge("atoll-hostile-", arguments, lambda folder, programs: measure(
        folder, programs, arguments.hostile.resolve(), arguments.attacks.split(",")))


if __name__ == "__main__":
    sys.exit(main())
