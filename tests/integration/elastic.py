#!/usr/bin/env python3
"""Workers come, go and are refused, with real programs.

add      a run of two workers with the default data.partitions: `workers add 1` gives a third that contributes.
full     with data.partitions 2 the same command is refused and says why; a third worker that is started by hand is listed
         in status, in the metrics and as one JOIN_REFUSED event: who, why, since when; when w1 is drained, it is let in.
drained  `drain w1` makes one worker wanted; `add 1` starts w2 and not w1; `scale 2` changes nothing; a coordinator that is
         started again leaves w1 alone; `restart w1` brings it back.
data     a worker with other token files joins first and leaves before round 1: the others train all the same. After the
         first contribution the wrong files are refused, until `run reset-data`.
extend   a finished run is extended: `--dry-run` shows the learning rate and changes nothing, `--yes` goes on with workers
         that are started again, and the learning rate of no round is above that of the round before. A file with more
         rounds is refused and names the command.
streamed a finished overlapped run, of one fragment and of three, is extended and goes on to its new budget; also when the
         coordinator and its workers are stopped and started again right after, at bases on which workers were refused.
planned  a finished run stays finished when its file has other run.workers: tokens, budget and learning rate stay, the rounds
         follow, an event says it; `run extend` goes on from the step and the rate that are true.

Usage: elastic.py --bin DIR [--keep] [PART...]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

from real_run import RealRun, judge, tokenize, tokenize_foxes
from shaped_run import scrape

PATIENCE_S = 90
CONFIG = """run: {{name: elastic, workers: 2, rounds: {rounds}, seed: 3}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}}}
data: {{tokenizer: bytes{data}}}
inner: {{steps: {steps}, learning_rate: 0.005, batch: 4}}
round: {{deadline_s: 60, {round}}}
outer: {{optimizer: {outer}}}
evaluation: {{every: 0}}
checkpoint: {{shards: 1}}
"""
ARGUMENTS = ["--threads=1", "--device=cpu"]


# Rounds that take longer than what is between them, so that the two do not fall into step.
ASYNC = {"round": "lease_s: 30, mode: async, staleness_limit: 40", "outer": "delayed_nesterov", "steps": 100}
EXPECTED_LATENESS = 2  # versions, of two workers in async mode: core/round_policy.h


def config(rounds=100000, data="", round="lease_s: 3", outer="nesterov", steps=10):
    return CONFIG.format(rounds=rounds, data=data, round=round, outer=outer, steps=steps)


class Part:
    """One run; what it complains of."""
    def __init__(self, folder, programs, text):
        self.run, self.programs, self.complaints = RealRun(folder, programs, text), programs, []
        self.hand = []

    def launch(self, tokens, workers=None, more=()):
        if workers != 0:
            more = ["--metrics-listen", "127.0.0.1:0", *more]
        self.run.launch(self.programs / "atoll-worker", [f"--data={tokens}", *ARGUMENTS], workers, more)

    def check(self, good, what):
        if not good:
            self.complaints.append(what)

    def by_hand(self, name, tokens):
        log = open(self.run.folder / f"{name}.log", "ab")
        worker = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", self.programs / "atoll-worker", f"--coordinator={self.run.data}", f"--name={name}",
             f"--data={tokens}", f"--state-dir={self.run.folder / name}", *ARGUMENTS], stdout=log, stderr=log,
            env=dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1"))
        self.hand.append(worker)
        return worker

    def log_of(self, name):
        return (self.run.folder / f"{name}.log").read_text()

    def scrape(self):
        return scrape(json.loads((self.run.folder / "ports.json").read_text())["metrics"])

    def counts(self, name):
        return int((self.run.workers() or {}).get(name, {}).get("contributions_accepted", 0))

    def contributes(self, name):
        before = self.counts(name)
        self.run.wait_for(lambda: self.counts(name) > before, PATIENCE_S, f"a contribution of {name}")

    def launcher(self):
        view = json.loads(self.run.ctl("launcher", "--json"))
        return {w["name"]: w["state"] for w in view.get("workers", [])}, int(view.get("target", 0)), view.get("drained", [])

    def state_is(self, name, state):
        self.run.wait_for(lambda: self.launcher()[0].get(name) == state, PATIENCE_S, f"{name} to be {state}")

    def end(self):
        for worker in self.hand:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
        self.run.end()


def add(folder, programs, tokens):
    part = Part(folder, programs, config())
    try:
        part.launch(tokens)
        part.run.wait_for(lambda: part.run.head() >= 1, PATIENCE_S, "version 1")
        part.check(part.run.ctl("workers", "add", "1") is not None, f"add 1 was refused: {part.run.complaint}")
        try:
            part.contributes("w2")
        except RuntimeError:
            part.check(False, "add: the added worker never contributed: " + part.log_of("coordinator/workers/w2")[-400:])
    finally:
        part.end()
    return part.complaints


def full(folder, programs, tokens):
    part = Part(folder, programs, config(data=", partitions: 2"))
    try:
        part.launch(tokens)
        part.run.wait_for(lambda: part.run.head() >= 1, PATIENCE_S, "version 1")
        refused = part.run.ctl("workers", "add", "1") is None
        part.check(refused and "data.partitions" in part.run.complaint, f"full: add 1 was not refused: {part.run.complaint}")
        part.check(part.launcher()[1] == 2, "full: a refused add changed what is wanted")
        part.by_hand("x", tokens)
        listed = lambda: [j for j in part.run.status().get("refused_joins", []) if j.get("worker") == "x"]
        part.run.wait_for(lambda: "all 2 parts" in part.log_of("x") or "partition" in part.log_of("x"), PATIENCE_S, "a refusal")
        part.check(listed() != [], f"full: status does not list the refused worker: {list(part.run.status())}")
        if listed():
            one = listed()[0]
            print("full:", one)
            part.check("2 parts" in one["message"] and one["since_s"] >= 0 and int(one["attempts"]) >= 1, f"full: {one}")
            events = [e for e in part.run.events() if e["kind"] == "JOIN_REFUSED"]
            part.check(len(events) == 1 and events[0]["worker"] == "x", f"full: not one event: {events}")
            metrics = part.scrape()
            part.check(metrics[("atoll_refused_joins", ())] == 1, "full: atoll_refused_joins is not 1")
            part.check(metrics.get(("atoll_joins_refused_total", (("reason", "resource_exhausted"),)), 0) >= 1,
                       "full: atoll_joins_refused_total does not count it")
        part.run.ctl("workers", "drain", "w1")
        part.contributes("x")
        part.check(listed() == [], f"full: it is in, and still listed: {listed()}")
    finally:
        part.end()
    return part.complaints


def drained(folder, programs, tokens):
    part = Part(folder, programs, config())
    say = lambda what: f"drained: {what}: {part.launcher()}"
    try:
        part.launch(tokens)
        part.run.wait_for(lambda: part.run.head() >= 1, PATIENCE_S, "version 1")
        part.run.ctl("workers", "drain", "w1")
        part.run.wait_for(lambda: any(e["kind"] == "WORKER_DRAINED" for e in part.run.events()), PATIENCE_S, "the drain")
        part.state_is("w1", "drained")
        part.check(part.launcher()[1:] == (1, ["w1"]), say("one is wanted"))
        part.run.ctl("workers", "add", "1")
        part.contributes("w2")
        workers, target, away = part.launcher()
        part.check(target == 2 and workers.get("w1") == "drained" and away == ["w1"], say("add 1 starts one"))
        part.run.ctl("workers", "scale", "2")
        part.contributes("w2")
        part.contributes("w0")
        part.check(part.launcher()[1] == 2, say("scale 2 keeps both that train"))
        part.run.end()
        (part.run.folder / "ports.json").unlink()
        part.launch(tokens)
        part.contributes("w2")
        workers, target, away = part.launcher()
        part.check(target == 2 and away == ["w1"] and workers.get("w1", "drained") == "drained", say("it stays away after a restart"))
        part.run.ctl("workers", "restart", "w1")
        part.contributes("w1")
        part.check(part.launcher()[1:] == (3, []), say("restart wants it again"))
    finally:
        part.end()
    return part.complaints


def wrong_tokens(folder, programs):
    (folder / "other").write_text("pack my box with five dozen liquor jugs\n" * 3000)
    return tokenize(programs, folder / "other", folder / "wrong-tokens")


def stuck(folder, programs, tokens):
    part = Part(folder, programs, config())
    wrong, of_w0 = wrong_tokens(folder, programs), folder / "of-w0"
    of_w0.symlink_to(tokens)
    (folder / "of-w1").symlink_to(tokens)
    try:
        part.launch(folder / "of-{name}")
        part.contributes("w0")
        part.contributes("w1")
        of_w0.unlink()
        of_w0.symlink_to(wrong)
        part.run.ctl("workers", "restart", "w0")
        part.run.wait_for(lambda: "w0" in [j["worker"] for j in part.run.status().get("refused_joins", [])] and
                          part.run.workers()["w0"]["state"] != "active", PATIENCE_S, "w0 to be refused")
        part.contributes("w1")
        before = part.run.workers()["w1"]["incarnation"]
        part.check(part.run.ctl("workers", "scale", "1") is not None, f"stuck: scale 1 was refused: {part.run.complaint}")
        part.run.wait_for(lambda: part.launcher()[0].get("w0", "stopped") == "stopped", PATIENCE_S, "w0 to be ended")
        part.contributes("w1")
        workers, target, _ = part.launcher()
        part.check(target == 1 and workers.get("w1") == "running", f"stuck: scale 1 does not keep the one that trains: {workers}")
        part.check(part.run.workers()["w1"]["incarnation"] == before, "stuck: w1 was started again")
    finally:
        part.end()
    return part.complaints


def asynchronous(folder, programs, tokens):
    part = Part(folder, programs, config(**ASYNC))
    try:
        part.launch(tokens)
        lateness = lambda: [point["value"] for point in part.run.metrics() if point["name"] == "worker/late_versions"]
        part.run.wait_for(lambda: sum(value >= 1 for value in lateness()) >= 10, PATIENCE_S, "ten contributions to an older base")
        # First what is counted, then what it is counted from: the run goes on meanwhile.
        samples, events = part.scrape(), part.run.events()
        versions = lateness()
        overtaken = sum(value > EXPECTED_LATENESS for value in versions)
        late = samples[("atoll_late_contributions_total", ())]
        told = [e["message"] for e in events if "later than" in e["message"]]
        print(f"async: {len(versions)} contributions, {sum(value >= 1 for value in versions)} to an older base, "
              f"{overtaken} overtaken more than once; {late:.0f} counted as late, {len(told)} events")
        part.check(late <= overtaken and len(told) <= overtaken, f"async: {late} late, {told}, of these: {versions}")
        # The rest of what the alert LateContributions counts.
        part.check(samples.get(("atoll_contributions_total", (("result", "stale_base"),)), 0) == 0, "async: some were refused")
    finally:
        part.end()
    return part.complaints


def budget(folder, programs, tokens):
    part = Part(folder, programs, config())
    listen = ["--metrics-listen", "127.0.0.1:0"]
    mib = lambda: part.scrape()[("atoll_contribution_budget_bytes", ())] / 2**20
    try:
        part.launch(tokens, 0, listen)
        part.check(mib() != 7, "budget: it is 7 MiB already")
        part.check(part.run.ctl("config", "set", "limits.contribution_budget_mib=7") is not None, f"budget: {part.run.complaint}")
        part.run.wait_for(lambda: mib() == 7, PATIENCE_S, "the budget to be 7 MiB")
        part.run.end()
        (part.run.folder / "ports.json").unlink()
        part.launch(tokens, 0, listen)
        # 0 until it is looked at for the first time.
        part.run.wait_for(lambda: mib() > 0, PATIENCE_S, "the metrics of the coordinator that was started again")
        part.check(mib() == 7, f"budget: after a restart it is {mib()} MiB")
        part.check(re.search(r"contribution_budget_mib: 7\b", part.run.ctl("config", "show")) is not None, "budget: config show has another")
    finally:
        part.end()
    return part.complaints


def data(folder, programs, tokens):
    wrong = wrong_tokens(folder.parent, programs)
    part = Part(folder, programs, config())
    try:
        part.launch(tokens, 0)
        # Paused, it trains no step, so it has nothing to push when it leaves.
        part.check(part.run.ctl("run", "pause") is not None, f"data: pause failed: {part.run.complaint}")
        first = part.by_hand("wrong", wrong)
        part.run.wait_for(lambda: "wrong" in (part.run.workers() or {}), PATIENCE_S, "the first worker")
        first.terminate()
        first.wait(60)
        part.check(part.run.ctl("run", "resume") is not None, f"data: resume failed: {part.run.complaint}")
        right = [part.by_hand("a", tokens), part.by_hand("b", tokens)]
        try:
            part.contributes("a")
        except RuntimeError:
            part.check(False, f"data: the right ones did not train; they ended with {[w.poll() for w in right]}: " + part.log_of("a")[-400:])
            return part.complaints
        again = part.by_hand("wrong", wrong)
        part.check(again.wait(60) == 6, f"data: the wrong files are not refused: {part.log_of('wrong')[-400:]}")
        part.check("reset-data" in part.log_of("wrong"), "data: the refusal does not name the remedy")
        for worker in right:
            worker.terminate()
            worker.wait(60)
        part.check(part.run.ctl("run", "reset-data") is not None, f"data: reset-data failed: {part.run.complaint}")
        part.by_hand("wrong", wrong)
        part.contributes("wrong")
    finally:
        part.end()
    return part.complaints


def extend(folder, programs, tokens):
    part = Part(folder, programs, config(rounds=8))
    run = part.run
    finished = lambda: run.status()["state"] == "RUN_STATE_FINISHED"
    try:
        part.launch(tokens)
        rates = []

        def until(end):
            status = run.status()
            rates.append((status["position_steps"], status["learning_rate"]))
            return end(status)
        run.wait_for(lambda: until(lambda s: s["position_steps"] >= 30), PATIENCE_S, "step 30")
        for rounds in (8, 4):
            text = run.ctl("run", "extend", str(rounds), "--dry-run")
            part.check(text is not None and "learning rate" in text, f"extend: no dry run: {run.complaint}")
            before = run.status()["config"]["run"]["rounds"]
            part.check(run.ctl("run", "extend", str(rounds), "--yes") is not None, f"extend: {run.complaint}")
            after = run.status()["config"]["run"]["rounds"]
            part.check(int(after) == int(before) + rounds, f"extend: {before} rounds, then {after}")
            print("extend:", " | ".join((text or "").splitlines()))
            run.wait_for(lambda: until(lambda s: s["state"] == "RUN_STATE_FINISHED"), PATIENCE_S, "the end")
        part.check(int(run.status()["config"]["run"]["rounds"]) == 20, "extend: not 20 rounds in all")
        up = [(a, b) for a, b in zip(rates, rates[1:]) if b[1] > a[1] * (1 + 1e-9)]
        part.check(not up, f"extend: the learning rate went up: {up}")
        part.check(len(rates) > 4 and rates[0][1] > rates[-1][1], f"extend: the rates say nothing: {rates}")
        run.end()
        (run.folder / "ports.json").unlink()
        part.launch(tokens)
        part.check(finished() and int(run.status()["config"]["run"]["rounds"]) == 20, "extend: lost at a restart with the old file")
        part.check(run.ctl("config", "set", "run.rounds=30") is None and "run extend" in run.complaint, f"extend: config set says {run.complaint}")
        run.end()
        (run.folder / "run.yaml").write_text(config(rounds=40))
        (run.folder / "ports.json").unlink()
        try:
            part.launch(tokens)
            part.check(False, "extend: a file with more rounds was taken")
        except RuntimeError as refusal:
            part.check("run extend" in str(refusal), f"extend: the refusal does not name the command: {refusal}")
    finally:
        part.end()
    return part.complaints


def streamed(folder, programs, tokens):
    complaints = []
    for fragments in (1, 3):
        text = config(rounds=4) + f"sync: {{mode: overlapped, fragments: {fragments}, delay_steps: 2}}\n"
        part = Part(folder / str(fragments), programs, text)
        run = part.run

        def spent():
            status = run.status()
            return status["state"] == "RUN_STATE_FINISHED" and int(status["committed_tokens"]) >= int(status["total_tokens"])
        try:
            part.launch(tokens)
            for number, starts_again in enumerate((False, True, True)):
                run.wait_for(spent, PATIENCE_S, f"the end before extension {number} of {fragments} fragments")
                before = int(run.status()["committed_tokens"])
                # The rounds of such small steps are longer than planned, and so is the run.
                part.check(run.ctl("run", "extend", "60", "--yes") is not None, f"streamed: {run.complaint}")
                if starts_again:
                    run.end()
                    (run.folder / "ports.json").unlink()
                    part.launch(tokens)
                run.wait_for(spent, PATIENCE_S, f"the end of extension {number} of {fragments} fragments")
                after = int(run.status()["committed_tokens"])
                part.check(after > before, f"streamed: {before} tokens before extension {number}, {after} after it")
            total = int(run.status()["total_tokens"])
            round_tokens = total // int(run.status()["config"]["run"]["rounds"])
            if after >= total + round_tokens:
                part.check(run.ctl("run", "extend", "1", "--yes") is None and "Extend it by at least" in run.complaint,
                           f"streamed: an extension that changes nothing: {run.complaint}")
        finally:
            part.end()
        complaints += part.complaints
    return complaints


def planned(folder, programs, tokens):
    part = Part(folder, programs, config(rounds=6))
    run = part.run
    shown = lambda status: {name: status[name] for name in ("state", "committed_tokens", "total_tokens", "learning_rate")}

    def again(text):
        run.end()
        (run.folder / "run.yaml").write_text(text)
        (run.folder / "ports.json").unlink()
        part.launch(tokens)
    try:
        part.launch(tokens)
        run.wait_for(lambda: run.status()["state"] == "RUN_STATE_FINISHED", PATIENCE_S, "the end")
        end = shown(run.status())
        for workers, rounds in ((4, 3), (1, 12)):
            again(config(rounds=6).replace("workers: 2", f"workers: {workers}"))
            part.check(shown(run.status()) == end, f"planned: {workers} workers in the file made {end} {shown(run.status())}")
            part.check(int(run.status()["config"]["run"]["rounds"]) == rounds, f"planned: not {rounds} rounds")
            messages = [event["message"] for event in run.events() if event["kind"] == "CONFIG_CHANGED"]
            part.check("the token budget of a begun run, which stays" in (messages or [""])[-1], f"planned: the events say {messages}")
        text = run.ctl("run", "extend", "12", "--yes") or run.complaint
        part.check("12 -> 24 (120 -> 240 inner steps; the run is at step 120)" in text and "0.0005 from now to the end" in text,
                   f"planned: extend says {text}")
        run.wait_for(lambda: run.status()["state"] == "RUN_STATE_FINISHED", PATIENCE_S, "the end of the extension")
    finally:
        part.end()
    return part.complaints


PARTS = {"planned": planned, "add": add, "full": full, "drained": drained, "stuck": stuck, "async": asynchronous, "budget": budget, "data": data, "extend": extend,
         "streamed": streamed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="leave the folders of the runs")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART", help="only these: " + ", ".join(PARTS))
    arguments = parser.parse_args()

    def measure(folder, programs):
        tokens = tokenize_foxes(programs, folder)
        complaints = []
        for name in arguments.parts or PARTS:
            try:
                complaints += PARTS[name](folder / name, programs, tokens)
            except RuntimeError as error:
                complaints.append(f"{name}: {str(error)[:160]} ... {str(error)[-300:]}")
        return complaints
    return judge("atoll-elastic-", arguments, measure)


if __name__ == "__main__":
    sys.exit(main())
