"""The dev overlay's pods train: started, probed, scaled by atollctl, killed, drained, and the coordinator's moved."""
import json
import subprocess
import time

from live.api_server import ApiServer
from live.engine import SOURCE, run
from live.images import COORDINATOR as COORDINATOR_IMAGE
from live.pods import Pods, wait_for

COORDINATOR, WORKER = ("StatefulSet", "atoll-coordinator"), ("StatefulSet", "atoll-worker")


class Cluster:
    def __init__(self, engine):
        self.engine = engine
        objects = json.loads(run("node", SOURCE / "tests/k8s/live/render.mjs", "overlays/dev"))
        network = f"10.{89 + time.time_ns() % 100}.{time.time_ns() // 100 % 250}"
        self.pods = Pods(engine, objects, network)
        engine.podman("network", "create", f"--subnet={network}.0/24", f"--gateway={network}.1", self.pods.network_name)
        engine.networks.append(self.pods.network_name)
        # The bridge, and so the gateway's address, is there once a container is.
        engine.podman("run", "--detach", "--name=pause", f"--network={self.pods.network_name}", f"--ip={network}.2", "--entrypoint=sleep",
                      COORDINATOR_IMAGE, "infinity")
        (role,) = [o for o in objects if o["kind"] == "Role"]
        self.api = ApiServer(f"{network}.1", engine.folder, role["rules"], WORKER[1], 1,
                             lambda ordinal: self.pods.start(*WORKER, ordinal), lambda ordinal: self.pods.stop(f"{WORKER[1]}-{ordinal}"))
        self.pods.credentials, self.pods.api = self.api.credentials, self.api.address

    def atollctl(self, *words):
        return self.engine.podman("exec", "atoll-coordinator-0", "atollctl", *words)

    def status(self):
        return json.loads(self.atollctl("--json", "status"))

    def version(self):
        return min((int(f.get("version", 0)) for f in self.status().get("fragments", [])), default=0)

    def live(self):
        workers = json.loads(self.atollctl("--json", "workers", "list"))["workers"]
        return sorted(w["name"] for w in workers if w["state"] == "active")

    def ready(self, workload, ordinal):
        return self.pods.probe(*workload, ordinal, "livenessProbe") and self.pods.probe(*workload, ordinal, "readinessProbe")

    def await_rounds(self, more, seconds):
        wanted = self.version() + more
        wait_for(lambda: self.version() >= wanted, seconds, lambda: f"version {wanted}: {self.atollctl('status')}")

    def close(self):
        self.api.close()


def pods_log(cluster, ordinal):
    return cluster.pods.log(f"{WORKER[1]}-{ordinal}")[-3000:]


def start(cluster):
    pods = cluster.pods
    pods.start(*COORDINATOR, 0)
    wait_for(lambda: cluster.ready(COORDINATOR, 0), 120, lambda: pods.log("atoll-coordinator-0"))
    assert not pods.probe(*WORKER, 0, "readinessProbe"), "a worker that does not run is ready"
    # A set that does not say how many has one; the coordinator asks for the other.
    pods.start(*WORKER, 0)
    for ordinal in range(2):
        wait_for(lambda o=ordinal: cluster.ready(WORKER, o), 180, lambda o=ordinal: pods.log(f"atoll-worker-{o}"))
    cluster.await_rounds(2, 240)
    print("two workers train", flush=True)


def scale_and_restart(cluster):
    cluster.atollctl("workers", "scale", "3")
    wait_for(lambda: cluster.live() == [f"atoll-worker-{i}" for i in range(3)], 180,
             lambda: f"{cluster.live()}, {cluster.api.failures}, {pods_log(cluster, 2)}")
    # One that does not answer: the launcher deletes its pod, and the set makes another.
    cluster.engine.podman("pause", "atoll-worker-1")
    wait_for(lambda: "atoll-worker-1" not in cluster.live(), 120, "the frozen worker is missed")
    cluster.engine.podman("unpause", "atoll-worker-1")
    subprocess.run(["podman", *map(str, cluster.engine.storage), "kill", "atoll-worker-1"], env=cluster.engine.environment, check=True,
                   stdout=subprocess.DEVNULL)
    cluster.atollctl("workers", "restart", "atoll-worker-1")
    wait_for(lambda: "atoll-worker-1" in cluster.live(), 180, lambda: f"{cluster.api.failures}, {pods_log(cluster, 1)}")
    cluster.await_rounds(1, 180)
    assert not cluster.api.refused, f"the role lacks {cluster.api.refused}"
    wanted = {f"{group}/{resource} {verb}" for rule in cluster.api.rules for group in rule["apiGroups"]
              for resource in rule["resources"] for verb in rule["verbs"]}
    assert cluster.api.calls == wanted, f"asked for {cluster.api.calls}, granted {wanted}"
    print("scaled to three, and one restarted, with exactly the role's rights", flush=True)


def drain(cluster):
    begun = time.monotonic()
    code = cluster.pods.stop("atoll-worker-2")
    log = cluster.pods.log("atoll-worker-2")
    assert code == 0, f"exit code {code}: {log[-2000:]}"
    assert "asked to leave; pushing what is done of the round" in log, log[-2000:]
    assert "no time left" not in log, log[-2000:]
    # It comes back as who it was: its claim has its name and secret.
    cluster.pods.start(*WORKER, 2)
    wait_for(lambda: "atoll-worker-2" in cluster.live(), 180, lambda: cluster.pods.log("atoll-worker-2"))
    print(f"a worker left within {time.monotonic() - begun:.0f} s of its 90, having pushed, and came back", flush=True)


def move_coordinator(cluster):
    before = cluster.version()
    cluster.engine.podman("kill", "--signal=KILL", "atoll-coordinator-0")
    wait_for(lambda: not cluster.ready(WORKER, 0), 120, "workers notice that the coordinator is gone")
    cluster.pods.start(*COORDINATOR, 0)
    wait_for(lambda: cluster.ready(COORDINATOR, 0), 120, lambda: cluster.pods.log("atoll-coordinator-0"))
    assert cluster.version() >= before, "the run went back"
    wait_for(lambda: cluster.ready(WORKER, 0), 180, lambda: cluster.pods.log("atoll-worker-0"))
    cluster.await_rounds(2, 240)
    code = cluster.pods.stop("atoll-coordinator-0")
    assert code == 0, cluster.pods.log("atoll-coordinator-0")[-2000:]
    print("the coordinator was killed, came back with its volume, and went on; then it left cleanly", flush=True)


def pods_train(engine):
    cluster = Cluster(engine)
    try:
        start(cluster)
        scale_and_restart(cluster)
        drain(cluster)
        move_coordinator(cluster)
    finally:
        cluster.close()
