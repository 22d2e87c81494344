#!/usr/bin/env python3
"""Ranks that nobody of ours supervises: as torchrun starts them, and with --island.

First the processes get torchrun's variables, rank 0 hosting the store; then real torchrun starts them, whose agent hosts the
store; then --island names the place. One rank's process is killed each time. It must show: versions are published, the other
rank ends by itself within the timeout and names the lost rank, and started again they go on as the same worker. A process that
comes back before its loss is noticed waits for that.

Usage: several_hosts.py --bin DIR [--keep]
Exit codes: 0 all of it, 1 not (the complaints are printed), 77 the programs are not there.
"""
import os
import signal
import subprocess
import sys
import urllib.request

from bad_ranks import free_port, torchrun
from island_run import IslandRun, config, run_as_test, tokenize_foxes

PATIENCE_S = 90
TIMEOUT_S = 5
PYTHON = "/usr/bin/python3"  # Debian's, which may have torch


class Hosts(IslandRun):
    def start_rank(self, tokens, rank, *more, variables=None):
        name = f"rank{rank}"
        kept = {key: os.environ.get(key) for key in variables or {}}
        os.environ.update(variables or {})
        try:
            return self.spawn(f"{name}.log", self.programs / "atoll-worker", "--coordinator", self.data, "--name", "w0", "--data",
                              tokens, "--state-dir", self.folder / "state-w0", "--threads", "1", "--device", "cpu",
                              "--rank-timeout", str(TIMEOUT_S), *more)
        finally:
            for key, value in kept.items():
                if value is None:
                    os.environ.pop(key, None)
                else:
                    os.environ[key] = value


def check_served(complaints, address, ready):
    """Ranks of one host have the same options: rank 0 serves its metrics, and only it makes the file."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        page = answer.read().decode()
    if "\natoll_worker_connected 1" not in page:
        complaints.append(f"{address} does not serve the metrics of rank 0: {page[-500:]}")
    if not ready.exists():
        complaints.append(f"rank 0 has not made {ready}")


def lose_one(run, complaints, start, lost, what, look=lambda: None):
    """Two lives; in the first, rank `lost` is killed. `look`: called while they train."""
    begin = run.head()
    ranks = [start(0), start(1)]
    try:
        run.await_version(begin + 2, PATIENCE_S)
        look()
        logged = len(run.log(f"rank{1 - lost}"))
        ranks[lost].kill()
        code = ranks[1 - lost].wait(TIMEOUT_S + 30)
        said = run.log(f"rank{1 - lost}")[logged:]
        if code != 75 or f"rank {lost} is lost" not in said:
            complaints.append(f"{what}: rank {1 - lost} exits with {code} and says: {said[-1000:]}")
        begin = run.head()
        ranks = [start(0), start(1)]
        run.await_version(begin + 2, PATIENCE_S)
        # SIGTERM to any rank drains the worker.
        ranks[1].terminate()
        codes = [rank.wait(60) for rank in ranks]
        if codes != [0, 0]:
            complaints.append(f"{what}: SIGTERM to rank 1 ends the ranks with {codes}: {run.log('rank0')[-1000:]}")
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
                rank.wait()


def come_back_early(run, complaints, start):
    """The host of rank 1 is gone without a goodbye, and its next process comes before rank 0 has noticed: it waits for the
    next life of the island."""
    begin, logged = run.head(), len(run.log("rank1"))
    ranks = [start(0), start(1)]
    run.await_version(begin + 2, PATIENCE_S)
    os.kill(ranks[1].pid, signal.SIGSTOP)
    gone = ranks[1]
    ranks[1] = start(1)
    try:
        code = ranks[0].wait(TIMEOUT_S + 30)
        ranks[0] = start(0)
        begin = run.head()
        run.await_version(begin + 2, PATIENCE_S)
        if code != 75 or ranks[1].poll() is not None or "waits for rank 0" not in run.log("rank1")[logged:]:
            complaints.append(f"a rank that comes back early: rank 0 had exited with {code}; {run.log('rank1')[logged:][-2000:]}")
        ranks[0].terminate()
        codes = [rank.wait(60) for rank in ranks]
        if codes != [0, 0]:
            complaints.append(f"a rank that comes back early: SIGTERM ends the ranks with {codes}")
    finally:
        for rank in (gone, *ranks):
            if rank.poll() is None:
                rank.kill()
                rank.wait()


STORE = "import torch.distributed as d; d.TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False)"


def torchrun_has_a_store():
    """Debian 13's has none: it asks for libuv, without which that PyTorch was built."""
    return "libuv" not in subprocess.run([PYTHON, "-c", STORE], capture_output=True, text=True, check=False).stderr


def with_real_torchrun(run, complaints, tokens):
    if subprocess.run([PYTHON, "-c", "import torch.distributed.run"], check=False, capture_output=True).returncode != 0:
        print("no torchrun here")
        return
    if not torchrun_has_a_store():
        print("the torchrun here cannot make its store: its PyTorch was built without libuv")
        return
    begin = run.head()
    # The redirection of standard output, which stays empty: torchrun 1.13 does not understand its own default with Python 3.11.
    agent = run.spawn("torchrun.log", PYTHON, "-m", "torch.distributed.run", "--no_python", "--nproc_per_node", "2", "--rdzv_backend", "c10d",
                      "--rdzv_endpoint", f"127.0.0.1:{free_port()}", "--max_restarts", "2", "--redirects", "1", "--tee", "1",
                      "--log_dir", run.folder / "torchrun", run.programs / "atoll-worker", "--coordinator", run.data,
                      "--name", "w0", "--data", tokens, "--state-dir", run.folder / "state-w0", "--device", "cpu")
    run.workers_by_name["agent"] = agent
    try:
        run.await_version(begin + 2, PATIENCE_S)
        os.kill(run.ranks("agent")[1], 9)
        begin = run.head()
        run.await_version(begin + 3, PATIENCE_S)
    except (RuntimeError, KeyError) as error:
        complaints.append(f"torchrun: {error}; {run.log('torchrun')[-3000:]}")
    finally:
        agent.terminate()
        agent.wait(60)


def measure(folder, programs):
    tokens = tokenize_foxes(programs, folder)
    run = Hosts(folder / "run", programs, config())
    complaints = []
    try:
        run.start_coordinator()
        port = free_port()
        lose_one(run, complaints, lambda rank: run.start_rank(tokens, rank, variables=torchrun(rank, 2, port)), 0, "variables")
        other = free_port()
        metrics, ready = f"127.0.0.1:{free_port()}", run.folder / "ready"
        lose_one(run, complaints, lambda rank: run.start_rank(tokens, rank, "--island", f"127.0.0.1:{other}", "--rank", str(rank),
                                                              "--world-size", "2", "--metrics-listen", metrics, "--ready-file", ready),
                 1, "--island", lambda: check_served(complaints, metrics, ready))
        other = free_port()
        come_back_early(run, complaints, lambda rank: run.start_rank(tokens, rank, "--island", f"127.0.0.1:{other}", "--rank", str(rank),
                                                                     "--world-size", "2"))
        with_real_torchrun(run, complaints, tokens)
        names = set(run.workers() or {})
        if names != {"w0"}:
            complaints.append(f"the members are {sorted(names)}")
    finally:
        run.kill_all()
    return complaints


if __name__ == "__main__":
    sys.exit(run_as_test("atoll-several-hosts-", __doc__, measure))
