#!/usr/bin/env python3
"""Real workers train over TLS: certificates, a token, and those that have neither.

The coordinator launches two workers, each with its own certificate; a third one comes with a token in place of a
certificate. The CA is being replaced: ca.pem has two, the new one signed the coordinator's and w1's certificate, the old one
w0's and the operator's. It must show: all three train to the end of the run and every version can be recomputed; a worker with
another's certificate, one without any, one that speaks plain text, and an operator with a worker's certificate are turned
away, each with a sentence that says why; the audit log names who was proven.

Usage: secure_run.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import argparse
import os
import pathlib
import subprocess
import sys

from real_run import RealRun, judge, tokenize

ROUNDS, PATIENCE_S = 6, 180
CONFIG = f"""run: {{name: secure, workers: 3, rounds: {ROUNDS}, seed: 3}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}}}
data: {{tokenizer: bytes}}
inner: {{steps: 8, learning_rate: 0.005, warmup_steps: 10, batch: 4}}
round: {{deadline_s: 60, start_workers: 3}}
evaluation: {{every: 0}}
checkpoint: {{shards: 1, keep_versions: 40}}
"""
ROOT = pathlib.Path(__file__).resolve().parents[2]


def show(certs, who):
    return ["--tls-ca", certs / "ca.pem", "--tls-cert", certs / f"{who}.pem", "--tls-key", certs / f"{who}.key"]


class Worker:
    """Outside of the launcher."""

    def __init__(self, run, name, tokens, credentials):
        self.log = run.folder / f"{name}.log"
        environment = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS="1")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", run.programs / "atoll-worker", "--coordinator", run.data, "--name", name,
                 "--data", tokens, "--state-dir", run.folder / f"state-{name}", "--threads", "1",
                 *credentials], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)

    def end(self):
        """Its exit code, and what it said."""
        code = self.process.wait(PATIENCE_S)
        return code, self.log.read_text()


def refused(run, name, tokens, credentials, why, complaints):
    """It ends by itself, or goes on asking: either way it must say why, and never become a member."""
    worker = Worker(run, name, tokens, credentials)
    try:
        run.wait_for(lambda: why in worker.log.read_text() or worker.process.poll() is not None, 60, f"{name} to be refused")
        if why not in worker.log.read_text():
            complaints.append(f"{name} was not told '{why}': {worker.log.read_text()[-600:]}")
        if name in (run.workers() or {}):
            complaints.append(f"{name} became a member")
    finally:
        worker.process.kill()
        worker.process.wait()


def measure(folder, programs):
    complaints = []
    tokens = tokenize(programs, ROOT / "README.md", folder / "tokens")
    certs = folder / "certs"
    for who in (["--coordinator", "--worker", "w0", "--worker", "w1", "--admin", "ann"],
                ["--renew", "--new-ca", "--coordinator", "--worker", "w1"]):
        subprocess.run([ROOT / "scripts/dev-certs.sh", certs, *who], check=True, stdout=subprocess.DEVNULL, timeout=60)
    run = RealRun(folder / "run", programs, CONFIG)
    run.credentials = show(certs, "admin-ann")
    run.launch(programs / "atoll-worker",
               [f"--data={tokens}", "--threads=1", f"--tls-ca={certs}/ca.pem",
                f"--tls-cert={certs}/worker-{{name}}.pem", f"--tls-key={certs}/worker-{{name}}.key"],
               workers=2, more=[*show(certs, "coordinator"), "--tls-client-auth", "optional"])
    try:
        refused(run, "w7", tokens, show(certs, "worker-w0"), "w0", complaints)
        refused(run, "w8", tokens, ["--tls-ca", certs / "ca.pem"], "token", complaints)
        refused(run, "w9", tokens, [], "TLS", complaints)
        run.credentials = show(certs, "worker-w0")
        if run.ctl("run", "pause") is not None or "admin" not in run.complaint:
            complaints.append(f"a worker's certificate on the admin port: {run.complaint}")
        run.credentials = show(certs, "admin-ann")
        token = run.ctl("tokens", "create", "--role", "worker", "--name", "w2")
        if not token:
            raise RuntimeError(f"no token: {run.complaint}")
        (folder / "w2.token").write_text(token.strip().splitlines()[-1] + "\n")
        third = Worker(run, "w2", tokens, ["--tls-ca", certs / "ca.pem", "--token-file", folder / "w2.token"])
        run.wait_for(lambda: (run.status() or {}).get("state") == "RUN_STATE_FINISHED", PATIENCE_S, "the run to finish")
        code, said = third.end()
        if code != 0:
            complaints.append(f"the worker with a token ended with {code}: {said[-600:]}")
        verified = run.ctl("verify")
        if verified is None:
            complaints.append(f"verify: {run.complaint}")
        contributors = {point["worker"] for point in run.metrics() if point["name"] == "worker/steps"}
        if contributors != {"w0", "w1", "w2"}:
            complaints.append(f"contributions of {contributors}")
        audit = [event["message"] for event in run.events() if event["kind"].endswith("ADMIN_ACTION")]
        if not any("ann" in line and "certificate" in line for line in audit):
            complaints.append(f"the audit log does not name ann and how she was proven: {audit}")
        print(f"three workers over TLS, version {run.head()}, {verified.strip().splitlines()[-1] if verified else ''}")
    finally:
        if run.end() != 0:
            complaints.append(f"the coordinator ended badly: {run.log_end()}")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--keep", action="store_true", help="leave the folder of the run, and print where it is")
    return judge("atoll-secure-", parser.parse_args(), measure)


if __name__ == "__main__":
    sys.exit(main())
