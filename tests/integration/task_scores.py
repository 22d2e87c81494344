#!/usr/bin/env python3
"""Tasks of evaluation.tasks in runs of real programs: the scores in the status are those of `atoll-model eval`.

1. A worker evaluates and trains in bfloat16. It has files of hellaswag (text), mmlu (a folder, with examples) and choices (tokens).
   The first, every third and the last version are scored, exactly as `atoll-model eval --version N` scores them on the same files,
   and the numbers are the same in the status, the events, the metric export, Prometheus and the web page's curve. They outlive a
   restart of the coordinator. The training is bit for bit that of a run without tasks. So it is with overlapped rounds.
2. Tasks that an operator adds to a run reach an evaluator that is there already. One that has no file for one of the tasks warns once, with the option to give, and reports the others. Another one with a
   file of many questions shows how far it is, and ends within seconds when it is told to.
3. Bad files and options are refused before the worker joins.

Usage: task_scores.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import base64
import json
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import time
import urllib.request

from hand_run import HandRun
from real_run import run_as_test, tokenize_foxes

ROUNDS, EVERY = 7, 3
CONFIG = """run: {{name: tasks, workers: 1, rounds: {rounds}, seed: 5}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: 64, vocabulary: 256, dropout: 0.1}}}}
data: {{tokenizer: bytes}}
inner: {{steps: 4, learning_rate: 0.01, warmup_steps: 4, batch: 4, precision: bf16}}
round: {{deadline_s: 60}}
codec: {{push: fp32, pull_delta: none}}
evaluation: {{every: 1, batches: 4, by: {by}{tasks}}}
checkpoint: {{shards: 1, keep_versions: 100}}
"""
ALL = ["hellaswag", "mmlu", "choices"]
WORDS = "the quick brown fox jumps over the lazy dog".split()


def config(rounds, by, tasks):
    return CONFIG.format(rounds=rounds, by=by, tasks=f", tasks: [{', '.join(tasks)}], tasks_every: {EVERY}" if tasks else "")


def phrase(draw, words):
    return " ".join(draw.choice(WORDS) for _ in range(words))


def hellaswag(path, questions):
    draw = random.Random(1)
    with open(path, "w", encoding="utf-8") as out:
        for index in range(questions):
            out.write(json.dumps({"activity_label": "A story", "ctx_a": f"{phrase(draw, 4)}.", "ctx_b": phrase(draw, 2),
                                  "endings": [phrase(draw, draw.randint(1, 6)) for _ in range(4)], "label": index % 4}) + "\n")
    return path


def mmlu(folder, questions):
    draw = random.Random(2)
    for part in ("test", "dev"):
        (folder / part).mkdir(parents=True)
        for subject in ("animals", "colours"):
            lines = [",".join([phrase(draw, 3), *(phrase(draw, 1 + i) for i in range(4)), "ABCD"[n % 4]]) for n in range(questions)]
            (folder / part / f"{subject}_{part}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def choices(path, questions):
    draw = random.Random(3)
    numbers = []
    for index in range(questions):
        context = list(phrase(draw, 5).encode())
        answers = [list((" " + phrase(draw, draw.randint(1, 4))).encode()) for _ in range(3)]
        body = [index, index % 3, len(answers), len(context), *context]
        for answer in answers:
            body += [len(answer), *answer]
        numbers += [65535, 2 * (len(body) + 2), *body]
    path.write_bytes(struct.pack("<256i", 20240522, 1, questions, 1000, *[0] * 252) + struct.pack(f"<{len(numbers)}H", *numbers))
    return path


class TaskFiles:
    def __init__(self, folder):
        self.hellaswag = hellaswag(folder / "hellaswag.jsonl", 60)
        self.mmlu = mmlu(folder / "mmlu", 12)
        self.choices = choices(folder / "choices.bin", 50)

    def of_worker(self):
        return ["--task", f"hellaswag={self.hellaswag}", "--task", f"mmlu={self.mmlu / 'test'}", "--task", f"choices={self.choices}",
                "--task-limit", "10", "--task-shots", "1", "--task-examples", self.mmlu / "dev"]

    def of_eval(self):
        return ["--hellaswag", self.hellaswag, "--mmlu", self.mmlu / "test", "--choices", self.choices, "--limit", "10", "--shots", "1",
                "--mmlu-examples", self.mmlu / "dev"]


def measured(run, files, version):
    """{(task, metric): value} of `atoll-model eval`, and the standard errors and questions alike."""
    done = subprocess.run([run.programs / "atoll-model", "eval", "--admin", run.admin, "--version", str(version), "--threads", "1",
                           "--device", "cpu", "--json", *files.of_eval()], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"atoll-model eval: {done.stderr}")
    found = {}
    for task in json.loads(done.stdout)["models"][0]["tasks"]:
        for key, value in task.items():
            if "acc" in key and not key.endswith("_stderr"):
                found[task["task"], key] = (value, task[f"{key}_stderr"], task["questions"])
    return found


def scores_of(evaluation):
    return {(score["task"], score["metric"]): (score.get("value", 0), score.get("standard_error", 0), int(score["questions"]))
            for score in evaluation.get("tasks", [])}


def evaluations(run):
    return {int(one.get("version", 0)): one for one in run.status(100)["evaluations"]}


def finished(run):
    return (run.status() or {}).get("state") == "RUN_STATE_FINISHED" and ROUNDS in evaluations(run)


def fetch(address, path):
    with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as reply:
        return reply.read().decode()


def check_shown(run, files, complaints):
    """Every place that shows scores shows those of `atoll-model eval`."""
    scored = {version: scores_of(one) for version, one in evaluations(run).items() if one.get("tasks")}
    due = [version for version in range(ROUNDS + 1) if version % EVERY == 0 or version == ROUNDS]
    if sorted(scored) != due:
        complaints.append(f"versions {sorted(scored)} have scores; {due} should")
    for version, scores in scored.items():
        expected = measured(run, files, version)
        if len(expected) != 7:
            complaints.append(f"atoll-model eval measured {sorted(expected)}")
        if scores != expected:
            complaints.append(f"version {version}: the status has {scores}, atoll-model eval measured {expected}")
    newest = scored.get(ROUNDS, {})
    points = {(point["name"], int(point["version"])): point["value"] for point in run.metrics()}
    events = [event for event in run.events() if event["kind"] == "EVALUATED" and int(event.get("version", 0)) == ROUNDS]
    if not events or scores_of(events[0]["evaluation"]) != newest or "hellaswag acc" not in events[0]["message"]:
        complaints.append(f"the events have {events}")
    page = fetch(run.metrics_address, "/metrics")
    curve = json.loads(fetch(run.web_address, "/api/v1/curve"))["tasks"]
    for (task, metric), (value, error, questions) in newest.items():
        if points.get((f"task/{task}/{metric}", ROUNDS)) != value:
            complaints.append(f"the export has {points.get((f'task/{task}/{metric}', ROUNDS))} for {task} {metric}, not {value}")
        line = [line for line in page.splitlines() if line.startswith(f'atoll_task_score{{metric="{metric}",task="{task}"}}') or
                line.startswith(f'atoll_task_score{{task="{task}",metric="{metric}"}}')]
        if len(line) != 1 or float(line[0].split()[-1]) != value:
            complaints.append(f"Prometheus gets {line} for {task} {metric}, not {value}")
        series = [one for one in curve if (one["task"], one["metric"]) == (task, metric)]
        last = [(one["version"][-1], one["value"][-1], one["questions"][-1]) for one in series]
        if len(last) != 1 or last[0][0] != ROUNDS or abs(last[0][1] - value) > 1e-5 or last[0][2] != questions:
            complaints.append(f"the curve has {last} for {task} {metric}, not {value}")
    summary = run.ctl("status", "--summary")
    if f"tasks            hellaswag acc {newest['hellaswag', 'acc'][0]:.4f}" not in summary:
        complaints.append(f"the summary is {summary}")


def parameters(run, name):
    out = run.folder / name
    if run.ctl("export", "--out", str(out)) is None:
        raise RuntimeError(run.complaint)
    return out.read_bytes()


def by_worker(folder, programs, tokens, files, complaints):
    run = HandRun(folder / "worker", programs, config(ROUNDS, "worker", ALL))
    try:
        run.start_coordinator("--metrics-listen", "127.0.0.1:0", "--web-listen", "127.0.0.1:0")
        worker = run.start_worker("w0", tokens, *files.of_worker())
        run.wait_for(lambda: finished(run), 180, "the end of the run")
        if worker.wait(60) != 0:
            complaints.append(f"the worker ended with {worker.returncode}: {run.worker_log_end('w0')}")
        check_shown(run, files, complaints)
        before = {version: scores_of(one) for version, one in evaluations(run).items()}
        run.stop_coordinator()
        run.start_coordinator()
        if {version: scores_of(one) for version, one in evaluations(run).items()} != before:
            complaints.append("after a restart of the coordinator the scores are others")
        trained = parameters(run, "with.safetensors")
    finally:
        run.kill_all()
    plain = HandRun(folder / "plain", programs, config(ROUNDS, "worker", []))
    try:
        plain.start_coordinator()
        plain.start_worker("w0", tokens)
        plain.wait_for(lambda: finished(plain), 180, "the end of the run without tasks")
        if parameters(plain, "without.safetensors") != trained:
            complaints.append("scoring tasks has changed what the worker trained")
    finally:
        plain.kill_all()


def overlapped(folder, programs, tokens, files, complaints):
    """The parameters of the version are set aside the worker's own for the time of the evaluation."""
    run = HandRun(folder / "overlapped", programs, config(ROUNDS, "worker", ALL) + "sync: {mode: overlapped, delay_steps: 2}\n")
    try:
        run.start_coordinator()
        run.start_worker("w0", tokens, *files.of_worker())
        # A round has as many steps as fit, so the number of versions is not that of the plan.
        run.wait_for(lambda: (run.status() or {}).get("state") == "RUN_STATE_FINISHED" and run.head() in evaluations(run), 180,
                     "the end of the overlapped run")
        scored = {version: scores_of(one) for version, one in evaluations(run).items() if one.get("tasks")}
        if not {0, run.head()} <= set(scored):
            complaints.append(f"overlapped: versions {sorted(scored)} have scores")
        for version, scores in scored.items():
            expected = measured(run, files, version)
            if scores != expected:
                complaints.append(f"overlapped, version {version}: the status has {scores}, atoll-model eval measured {expected}")
    finally:
        run.kill_all()


def by_evaluator(folder, programs, tokens, files, complaints):
    run = HandRun(folder / "evaluator", programs, config(100000, "evaluator", []))
    try:
        run.start_coordinator()
        judge = run.start_worker("judge", tokens, "--role", "evaluator", "--task", f"mmlu={files.mmlu / 'test'}", "--task-limit", "10")
        run.start_worker("w0", tokens)
        run.wait_for(lambda: evaluations(run), 120, "the evaluator")
        if "--task mmlu: the run does not ask for it" not in (run.folder / "judge.log").read_text():
            complaints.append(f"the evaluator does not say that its task is not asked for: {run.worker_log_end('judge')}")
        # An evaluator that is there already follows.
        if run.ctl("config", "set", "evaluation.tasks=mmlu,hellaswag", f"evaluation.tasks_every={EVERY}") is None:
            complaints.append(f"config set: {run.complaint}")
        run.wait_for(lambda: sum(1 for one in evaluations(run).values() if one.get("tasks")) >= 2, 120, "scores of the evaluator")
        log = (run.folder / "judge.log").read_text()
        warned = log.count("the run asks for the task 'hellaswag', and this process has no file for it")
        if warned != 1 or "--task hellaswag=FILE" not in log:
            complaints.append(f"the evaluator warned {warned} times of the missing file: {log[-1500:]}")
        tasks = {score["task"] for one in evaluations(run).values() for score in one.get("tasks", [])}
        if tasks != {"mmlu"}:
            complaints.append(f"the evaluator reported {tasks}")
        judge.send_signal(signal.SIGTERM)
        judge.wait(60)
        long = hellaswag(run.folder / "long.jsonl", 50000)
        judge = run.start_worker("slow", tokens, "--role", "evaluator", "--task", f"hellaswag={long}")
        run.wait_for(lambda: "of 50000 questions" in run.workers().get("slow", {}).get("progress", {}).get("waiting_for", ""), 120,
                     "the evaluator to say how far it is")
        shown = run.ctl("workers", "list") or ""
        if not re.search(r"evaluating.*  hellaswag, \d+ of 50000 questions", shown):
            complaints.append(f"the list of workers does not say how far the tasks are: {shown}")
        begin = time.monotonic()
        judge.send_signal(signal.SIGTERM)
        code = judge.wait(60)
        if code != 0 or time.monotonic() - begin > 20:
            complaints.append(f"an evaluator in its tasks took {time.monotonic() - begin:.1f} s to end, with {code}")
        if "the tasks were interrupted" not in (run.folder / "slow.log").read_text():
            complaints.append(f"the evaluator does not say that its tasks were interrupted: {run.worker_log_end('slow')}")
        if run.ctl("config", "set", "evaluation.tasks=") is None:
            complaints.append(f"taking the tasks out of the run: {run.complaint}")
    finally:
        run.kill_all()


def small_vocabulary(folder):
    """A tokenizer whose tokens are the bytes too, in a file."""
    file = folder / "small.tiktoken"
    file.write_text("".join(f"{base64.b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(256)))
    return file


def refused(folder, programs, tokens, files, complaints):
    (folder / "bad.jsonl").write_text("{}\n")
    usage, files_code = 2, 6
    attempts = [
        (["--task", "helaswag=x"], usage, "did you mean 'hellaswag'?"),
        (["--task", "hellaswag"], usage, "write NAME=FILE"),
        (["--task", f"mmlu={files.mmlu / 'test'}", "--task", "mmlu=y"], usage, "'mmlu' is given twice"),
        (["--task-limit", "3"], usage, "--task"),
        (["--task", f"hellaswag={folder / 'none'}"], files_code, str(folder / "none")),
        (["--task", f"hellaswag={folder / 'bad.jsonl'}"], files_code, "line 1"),
        (["--task", f"hellaswag={files.hellaswag}", "--tokenizer", folder / "none"], files_code, "--tokenizer"),
        (["--task", f"hellaswag={files.hellaswag}", "--tokenizer", small_vocabulary(folder), "--tokenizer-pattern", "gpt2"],
         files_code, "the scores would mean nothing"),
    ]
    for arguments, code, text in attempts:
        state = folder / "refused"
        done = subprocess.run([programs / "atoll-worker", "--coordinator", "127.0.0.1:1", "--name", "w", "--data", tokens, "--state-dir",
                               state, *arguments], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != code or text not in done.stderr + done.stdout:
            complaints.append(f"{arguments} ended with {done.returncode}: {done.stderr}{done.stdout}")
        if state.exists():
            complaints.append(f"{arguments} left a state directory")


def measure(folder, programs):
    folder = pathlib.Path(folder)
    tokens = tokenize_foxes(programs, folder)
    files = TaskFiles(folder)
    complaints = []
    refused(folder, programs, tokens, files, complaints)
    by_worker(folder, programs, tokens, files, complaints)
    overlapped(folder, programs, tokens, files, complaints)
    by_evaluator(folder, programs, tokens, files, complaints)
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-tasks-", __doc__, measure))
