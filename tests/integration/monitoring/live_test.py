#!/usr/bin/env python3
"""A real Prometheus scrapes a real run: live_test.py REPOSITORY BIN_DIR TESTS_DIR.

The coordinator and workers over real gRPC (without LibTorch: synthetic_worker.cc), one of which is killed and
one of which leaves; a checkpoint; a coordinator that is killed; a command with a trace of its own. Then every query of every dashboard returns data, the
rules load without an error, CoordinatorDown fires when the coordinator is ended, and one push can be followed from a worker's
log to the coordinator's. Exit code 77: prometheus is not installed."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

from queries import expressions, substituted

CONFIG = """
run: {name: watched, workers: 3, rounds: 100000}
model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}
data: {tokenizer: bytes, mode: shared}
inner: {steps: 5, learning_rate: 0.1, batch: 3}
merge: {norm_guard: true}
round: {deadline_s: 5, grace_s: 0, quorum: 0.6, lease_s: 2}
codec: {push: fp32, pull_delta: none}
evaluation: {every: 1}
"""
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SECONDS = 16
# What a healthy run has nothing of, or one without TLS, privacy, overlap and tasks, whose workers do not measure their device. The rest must answer.
QUIET = {"Exchange threads", "Scores of tasks", "Model FLOPs utilization", "Rounds discarded",
         "Full in", "Certificate ends in", "Certificate files", "Privacy spent"}
OPENED = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Programs:
    """Ends what it started."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.running = {}

    def start(self, name, *arguments, environment=None):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.running[name] = subprocess.Popen([str(a) for a in arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                                  env={**os.environ, **(environment or {})})

    def end(self, name, how=signal.SIGTERM):
        process = self.running.pop(name)
        process.send_signal(how)
        process.wait(60)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running.values():
            process.kill()
            process.wait()


def wait_for(what, done, seconds=60):
    deadline = time.monotonic() + seconds
    while not (result := done()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.05)
    return result


class Prometheus:
    def __init__(self, programs, root, targets):
        folder = programs.folder
        shutil.copy(root / "monitoring/prometheus/atoll.rules.yaml", folder)
        text = (root / "monitoring/prometheus/prometheus.yml").read_text().replace("15s", "1s")
        text = text.replace("127.0.0.1:7602", targets.pop("coordinator"))
        text = text.replace("127.0.0.1:7611, 127.0.0.1:7612, 127.0.0.1:7613, 127.0.0.1:7614", ", ".join(targets.values()))
        # Alerts that wait for minutes would not be seen within this test.
        rules = folder / "atoll.rules.yaml"
        rules.write_text(rules.read_text().replace("for: 5m", "for: 1s").replace("interval: 30s", "interval: 1s"))
        (folder / "prometheus.yml").write_text(text)
        with __import__("socket").socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        programs.start("prometheus", "prometheus", f"--config.file={folder / 'prometheus.yml'}",
                       f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address={self.url[7:]}")
        wait_for("prometheus", self.ready)

    def ready(self):
        try:
            return OPENED.open(self.url + "/-/ready", timeout=5).status == 200
        except OSError:
            return False

    def ask(self, path, **parameters):
        with OPENED.open(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=30) as answer:
            return json.load(answer)["data"]

    def series(self, expr, since):
        """In the run's whole time, as a panel would show it."""
        return self.ask("query_range", query=expr, start=since, end=time.time(), step=1)["result"]

    def has_data(self, expr, since):
        """Something that is a number."""
        return any(value not in ("NaN", "+Inf", "-Inf") for each in self.series(expr, since) for _, value in each["values"])


def start_coordinator(programs, bin_dir, ports):
    """On these ports, or on any when there are none yet."""
    folder = programs.folder
    file = folder / "ports"
    file.unlink(missing_ok=True)
    at = [part for flag, port in (("--listen", "data"), ("--admin-listen", "admin"), ("--metrics-listen", "metrics"))
          for part in (flag, ports.get(port, "127.0.0.1:0"))]
    programs.start("coordinator", bin_dir / "atoll-coordinator", "--config", folder / "run.yaml", "--data-dir", folder / "data",
                   *at, "--port-file", file, "--log-format", "json")
    wait_for("the coordinator", file.exists)
    return json.loads(file.read_text())


def start_run(programs, bin_dir, tests_dir):
    (programs.folder / "run.yaml").write_text(CONFIG)
    ports = start_coordinator(programs, bin_dir, {})
    targets = {"coordinator": ports["metrics"]}
    for name in ("w1", "w2", "w3"):
        targets[name] = start_worker(programs, tests_dir, ports, name)
    return ports, targets


def start_worker(programs, tests_dir, ports, name):
    file = programs.folder / f"{name}.port"
    programs.start(name, tests_dir / "synthetic_worker", ports["data"], name, file)
    return wait_for(name, lambda: file.exists() and file.read_text())


def atollctl(bin_dir, ports, *arguments, environment=None):
    return subprocess.run([bin_dir / "atollctl", "--admin", ports["admin"], "--coordinator", ports["data"], *arguments],
                          check=True, capture_output=True, text=True, timeout=60, env={**os.environ, **(environment or {})}).stdout


def refused(bin_dir, ports, *arguments):
    try:
        atollctl(bin_dir, ports, *arguments)
    except subprocess.CalledProcessError:
        return
    raise RuntimeError(f"atollctl {' '.join(arguments)} was not refused")


def panels(root, coordinator):
    """(file, title, expression) of every query; rates over a few scrapes, and looks back that this test is long enough for."""
    for path in sorted((root / "monitoring/grafana/dashboards").glob("*.json")):
        for title, expr in expressions(json.loads(path.read_text())):
            yield path.name, title, substituted(expr, coordinator, interval="10s").replace("offset 1m", "offset 5s")


def unanswered(root, prometheus, coordinator, since):
    return [f"{name}: {title}: nothing for {expr}" for name, title, expr in panels(root, coordinator)
            if title not in QUIET and not prometheus.has_data(expr, since)]


def see_a_refused_call(root, bin_dir, ports, prometheus, coordinator):
    """The panel is at 0 while nothing is refused, which Prometheus must have seen before; then it shows the reason."""
    (expr,) = [expr for _, title, expr in panels(root, coordinator) if title == "Calls rejected"]
    since = time.time()
    shown = lambda: {each["metric"].get("reason") for each in prometheus.series(expr, since)}
    wait_for("the panel to show that nothing is refused", lambda: shown() == {"none"})
    refused(bin_dir, ports, "workers", "describe", "nobody")
    wait_for("the panel to show the refused call", lambda: "not_found" in shown())


def json_lines(text):
    lines = []
    for line in text.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            pass
    return lines


def untraced(programs, bin_dir, ports):
    """A push of w1 is in both logs under one id; the command's trace is in the coordinator's log and in the event."""
    found = []
    rounds = [line for line in json_lines(programs.log("w1")) if line["message"] == "round done"]
    accepted = {line.get("trace_id"): line for line in json_lines(programs.log("coordinator"))
                if line["message"] == "contribution accepted"}
    followed = [(line, accepted[line["trace_id"]]) for line in rounds if line.get("trace_id") in accepted]
    if not followed or any(line["base"] != other["base"] or other["worker"] != "w1" for line, other in followed):
        found.append(f"of {len(rounds)} rounds of w1 {len(followed)} can be followed into the coordinator's log")
    if len({line["trace_id"] for line, _ in followed}) != len(followed):
        found.append("rounds share a trace")
    events = json_lines(atollctl(bin_dir, ports, "events", "--json"))
    audit = [event for event in events if event.get("traceId", event.get("trace_id")) == TRACE]
    if not any(event["kind"] == "ADMIN_ACTION" for event in audit):
        found.append(f"no audit line has the trace of its command: {[e for e in events if e['kind'] == 'ADMIN_ACTION']}")
    if TRACE not in programs.log("coordinator"):
        found.append("the command's trace is not in the coordinator's log")
    return found


def bad_rules(prometheus):
    groups = prometheus.ask("rules")["groups"]
    return [f"{rule['name']}: {rule.get('lastError')}" for group in groups for rule in group["rules"] if rule["health"] != "ok"]


def firing(prometheus, name):
    return [alert for alert in prometheus.ask("alerts")["alerts"] if alert["labels"]["alertname"] == name and
            alert["state"] == "firing"]


def watch(programs, root, bin_dir, tests_dir):
    ports, targets = start_run(programs, bin_dir, tests_dir)
    coordinator = targets["coordinator"]
    since = time.time()
    prometheus = Prometheus(programs, root, dict(targets))
    time.sleep(SECONDS / 4)
    see_a_refused_call(root, bin_dir, ports, prometheus, coordinator)
    programs.end("w3", signal.SIGKILL)
    atollctl(bin_dir, ports, "checkpoint", "create", "one", environment={"TRACEPARENT": f"00-{TRACE}-00f067aa0ba902b7-01"})
    atollctl(bin_dir, ports, "config", "set", "round.deadline_s=6")
    start_worker(programs, tests_dir, ports, "w4")
    time.sleep(SECONDS / 4)
    programs.end("coordinator", signal.SIGKILL)
    start_coordinator(programs, bin_dir, ports)
    time.sleep(SECONDS / 4)
    programs.end("w2")
    atollctl(bin_dir, ports, "config", "set", "round.deadline_s=7")
    time.sleep(SECONDS / 4)
    made = [float(each["value"][1]) for each in prometheus.ask("query", query="atoll_last_checkpoint_timestamp_seconds")["result"]]
    if not made or not since < made[0] < time.time():
        raise RuntimeError(f"after its restart the coordinator dates the newest checkpoint {made}")
    found = unanswered(root, prometheus, coordinator, since) + bad_rules(prometheus) + untraced(programs, bin_dir, ports)
    if firing(prometheus, "CoordinatorDown") or firing(prometheus, "RoundStalled"):
        found.append("alerts fire while the run goes on")
    programs.end("coordinator")
    wait_for("CoordinatorDown to fire", lambda: firing(prometheus, "CoordinatorDown"), 30)
    return found


def main():
    if shutil.which("prometheus") is None:
        print("skipped: prometheus is not installed (scripts/setup.sh installs it)")
        return 77
    root, bin_dir, tests_dir = map(pathlib.Path, sys.argv[1:4])
    with tempfile.TemporaryDirectory() as folder, Programs(folder) as programs:
        try:
            found = watch(programs, root, bin_dir, tests_dir)
        except Exception:
            print(programs.log("coordinator")[-3000:])
            raise
    print("\n".join(found) or "every query returns data, the rules work, a push can be followed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
