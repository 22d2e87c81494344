#!/usr/bin/env python3
"""A run whose model only its workers know, with the real programs and a client that has nothing of ours but the .proto files.

external_model.py BIN PROTOC GRPC_PYTHON_PLUGIN PROTO_DIR WELL_KNOWN_DIR

It must show: `config validate` and `plan` work without a model; a killed coordinator knows the model or does not, never half of
it, and goes on either way; a client seeds three odd tensors, trains to the end of the run, and every version is Nesterov's step
as numpy computes it in float32; another model is refused by the tensor's name, another base model too; `status`, `export` (also of
versions, a checkpoint and the momentum) and `verify` work, and an exported file begins another run; Atoll's own worker and `generate` refuse the run.
Exit codes: 0 all of it, 1 not, 77 python3 here lacks grpc, protobuf or numpy.
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
try:
    import google.protobuf  # noqa: F401
    import grpc
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh installs python3-grpcio, python3-protobuf, python3-numpy)")
    sys.exit(77)
import array_client  # noqa: E402
import waiting  # noqa: E402
from array_client import ArrayClient  # noqa: E402

ROUNDS, STEPS, BATCH = 4, 3, 2
CONFIG = f"""
run: {{name: shells, workers: 1, rounds: {ROUNDS}}}
model: external
inner: {{steps: {STEPS}, learning_rate: 0.1, batch: {BATCH}}}
outer: {{learning_rate: 0.7, momentum: 0.9}}
codec: {{push: fp32, pull_delta: none}}
evaluation: {{every: 1}}
round: {{deadline_s: 60, grace_s: 0, lease_s: 120}}
"""
SHAPES = {"table": (11, 9), "scale": (), "deep/kernel.0": (7, 5, 3)}
BASE = "5f" * 32
UNKNOWN = "not known until the first worker joins"


def start_values():
    generator = np.random.default_rng(7)
    return {name: generator.standard_normal(shape).astype("f4") for name, shape in SHAPES.items()}


class Coordinator:
    def __init__(self, programs, folder, fault="", more=()):
        self.programs, self.folder = programs, folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "run.yaml").write_text(CONFIG)
        ports = folder / "ports.json"
        ports.unlink(missing_ok=True)
        self.log = (folder / "log").open("ab")
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "env", f"ATOLL_FAULT={fault}", programs / "atoll-coordinator",
             "--config", folder / "run.yaml", "--data-dir", folder / "data", "--listen", "127.0.0.1:0",
             "--admin-listen", "127.0.0.1:0", "--metrics-listen", "", "--web-listen", "", "--port-file", ports, *more],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        waiting.wait_for(self.process, self.log_end, ports.exists, 60, "the coordinator to serve")
        found = json.loads(ports.read_text())
        self.data, self.admin = found["data"], found["admin"]

    def log_end(self):
        return (self.folder / "log").read_text()[-3000:]

    def ctl(self, *arguments, code=0, there=None):
        there = there or ["--admin", self.admin, "--coordinator", self.data]
        done = subprocess.run([self.programs / "atollctl", *there, *arguments], capture_output=True, text=True, timeout=120,
                              check=False)
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def status(self):
        return json.loads(self.ctl("status", "--json"))

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=30)
        self.log.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=60) == 0, self.log_end()
        self.log.close()


def refused(call, code, *words):
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code and all(word in error.details() for word in words), error
        return
    raise AssertionError(f"not refused with {code}")


def run_program(command, code, *words):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == code and all(word in said for word in words), (command, done.returncode, said)


def other_arrays():
    return {**start_values(), "table": np.zeros((11, 8), "f4")}


def client_of(pb, coordinator, name, arrays, base=BASE):
    return ArrayClient(pb, coordinator.data, name, array_client.manifest_of(pb, arrays, embeddings=("table",), base=base))


def check_before_a_run(programs, folder):
    """What needs no coordinator."""
    file = folder / "run.yaml"
    file.write_text(CONFIG)
    run_program([programs / "atollctl", "config", "validate", file], 0, "is valid", "the model is external")
    run_program([programs / "atollctl", "plan", file], 2, "give --parameters N")
    run_program([programs / "atollctl", "plan", file, "--parameters", "1000000"], 0, "1.00M parameters")


def seed_and_be_killed(pb, programs, folder, fault):
    """Whether the model was there after the coordinator died at this place."""
    coordinator = Coordinator(programs, folder, fault=f"{fault}:1")
    arrays = start_values()
    client = client_of(pb, coordinator, "first", arrays)
    client.join()
    refused(lambda: client.seed(array_client.flat_of(arrays)), grpc.StatusCode.UNAVAILABLE)
    client.close()
    coordinator.process.wait(timeout=60)
    coordinator.log.close()
    coordinator = Coordinator(programs, folder)
    try:
        known = int(coordinator.status().get("parameters", 0)) > 0
        first, second = client_of(pb, coordinator, "first", arrays), client_of(pb, coordinator, "second", other_arrays())
        winner, loser = (first, second) if known else (second, first)
        winner.join()
        if not known:
            assert UNKNOWN in coordinator.ctl("status")
            winner.seed(array_client.flat_of(other_arrays()))
        refused(loser.join, grpc.StatusCode.FAILED_PRECONDITION, "'table' has shape")
        assert winner.pull()[0].version == 0
        coordinator.stop()
    finally:
        coordinator.process.kill()
    return known


def train(client, momentum, at_version):
    """To the end of the run. Returns what was published last, and the losses that were reported. Calls
    `at_version(version, theta)`, with the momentum as it is then."""
    pb = client.pb["coordinator"]
    target = array_client.flat_of({name: np.full(shape, 0.25, "f4") for name, shape in SHAPES.items()})
    loss_of = lambda values: float(np.mean((values - target) ** 2)) + 0.01  # noqa: E731
    header, theta = client.pull()
    samples, losses = 0, {}
    while True:
        at_version(header.version, theta)
        if header.plan.evaluate:
            losses[header.version] = loss_of(theta)
            client.heartbeat([(header.version, losses[header.version], 100)])
        if header.version == ROUNDS:
            return theta, losses
        local = theta.copy()
        for _ in range(header.plan.inner_steps):
            local -= np.float32(0.1) * (local - target)
        delta = theta - local
        samples += STEPS * BATCH
        client.push(header.version, delta, STEPS, STEPS * BATCH, samples, loss_of(local))
        momentum[:] = np.float32(0.9) * momentum + delta
        expected = theta - np.float32(0.7) * (delta + np.float32(0.9) * momentum)
        before = header.version
        header, theta = client.pull(after=before)
        assert header.outcome == pb.PullHeader.PARAMETERS and header.version == before + 1, header
        np.testing.assert_allclose(theta, expected, rtol=1e-6, atol=1e-7)


def read_safetensors(path):
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size])
    metadata = header.pop("__metadata__")
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32", entry
        arrays[name] = np.frombuffer(raw[8 + size + begin:8 + size + end], "<f4").reshape(entry["shape"])
    return arrays, metadata


def check_refusals(pb, coordinator):
    described = client_of(pb, coordinator, "late", start_values()).describe()
    assert {t.name: tuple(t.shape) for t in described.manifest.tensors} == SHAPES, described.manifest
    assert described.manifest.base_fingerprint == BASE and described.config.model.HasField("external")
    code = grpc.StatusCode.FAILED_PRECONDITION
    refused(client_of(pb, coordinator, "late", other_arrays()).join, code, "tensor 'table' has shape [11, 8], and [11, 9]")
    refused(client_of(pb, coordinator, "late", start_values(), base="00" * 32).join, code, "the frozen parameters differ")
    hash_only = client_of(pb, coordinator, "late", other_arrays())
    refused(lambda: hash_only.join(hash_only=True), code, "send the manifest with the Join")


def check_own_worker(programs, folder, coordinator):
    """Atoll's worker is not built everywhere."""
    if not (programs / "atoll-worker").exists():
        return
    (folder / "text").write_text("the same few words " * 200)
    run_program([programs / "atoll-data", "tokenize", "--tokenizer", "bytes", "--out", folder / "tokens", folder / "text"], 0)
    run_program([programs / "atoll-worker", "--coordinator", coordinator.data, "--data", folder / "tokens", "--state-dir",
                 folder / "state"], 5, "model.external")
    run_program([programs / "atoll-worker", "generate", "--coordinator", coordinator.data, "--prompt", "a"], 5,
                "model.external", "atollctl export")


def check_exports(coordinator, folder, kept):
    """Versions and a checkpoint, as numpy knows them, by the admin port alone."""
    file, momentum = folder / "stored.safetensors", folder / "stored.momentum.safetensors"
    admin = ["--admin", coordinator.admin]
    for version, source in ((2, ["--checkpoint", "at-two"]), (ROUNDS - 1, ["--version", str(ROUNDS - 1)]), (ROUNDS, [])):
        coordinator.ctl("export", "--out", file, "--with-momentum", *source, there=admin)
        theta, of_optimizer = (array_client.arrays_of(flat, SHAPES) for flat in kept[version])
        exported, metadata = read_safetensors(file)
        assert metadata["atoll_version"] == str(version) and metadata["base_fingerprint"] == BASE, metadata
        beside, _ = read_safetensors(momentum)
        assert list(beside) == [f"momentum.{name}" for name in SHAPES], list(beside)
        for name in SHAPES:
            np.testing.assert_array_equal(exported[name], theta[name])
            np.testing.assert_allclose(beside[f"momentum.{name}"], of_optimizer[name], rtol=1e-6, atol=1e-7)
    for there in (admin, None):
        said = coordinator.ctl("export", "--format", "hf", "--out", folder / "hf", code=2, there=there)
        assert "the model of the run is external" in said, said
    assert "stored versions: 3, 4" in coordinator.ctl("export", "--version", "1", "--out", file, code=5)
    assert not (folder / "hf").exists()


def check_a_run(pb, programs, folder):
    coordinator = Coordinator(programs, folder / "run")
    try:
        assert UNKNOWN in coordinator.ctl("status")
        coordinator.ctl("export", "--out", folder / "none.safetensors", code=5)
        client = client_of(pb, coordinator, "first", start_values())
        assert not client.describe().HasField("manifest")
        assert client.join().seed_granted
        client.seed(array_client.flat_of(start_values()))
        assert "3 tensors, 205 parameters" in coordinator.ctl("status")
        check_refusals(pb, coordinator)
        check_own_worker(programs, folder, coordinator)
        momentum = np.zeros_like(array_client.flat_of(start_values()))
        kept = {}

        def keep(version, theta):
            kept[version] = (theta, momentum.copy())
            if version == 2:
                coordinator.ctl("checkpoint", "create", "at-two")
        theta, losses = train(client, momentum, keep)
        check_exports(coordinator, folder, kept)
        assert len(losses) == ROUNDS + 1 and losses[ROUNDS] < losses[0], losses
        status = coordinator.status()
        assert status["state"] == "RUN_STATE_FINISHED" and status["tensors"] == 3, status
        shown = [one["loss"] for one in status["evaluations"]]
        assert shown == list(losses.values()), (shown, losses)
        client.leave()
        client.close()
        coordinator.ctl("verify")
        coordinator.kill()
        coordinator = Coordinator(programs, folder / "run")
        file = folder / "model.safetensors"
        coordinator.ctl("export", "--out", file)
        exported, metadata = read_safetensors(file)
        for name, values in array_client.arrays_of(theta, SHAPES).items():
            np.testing.assert_array_equal(exported[name], values)
        assert list(exported) == list(SHAPES) and metadata["base_fingerprint"] == BASE, metadata
        coordinator.stop()
    finally:
        coordinator.process.kill()
    return file, theta


def check_an_import(pb, programs, folder, file, theta):
    coordinator = Coordinator(programs, folder / "imported", more=["--import", file])
    try:
        client = client_of(pb, coordinator, "first", start_values())
        assert not client.join().seed_granted, "the file has seeded the run"
        np.testing.assert_array_equal(client.pull()[1], theta)
        check_refusals(pb, coordinator)
        client.close()
        coordinator.stop()
    finally:
        coordinator.process.kill()


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="atoll-external-") as name:
        folder = pathlib.Path(name)
        (folder / "generated").mkdir()
        pb = array_client.generate(*sys.argv[2:6], folder / "generated")
        check_before_a_run(programs, folder)
        known = {fault: seed_and_be_killed(pb, programs, folder / fault, fault)
                 for fault in ("ingest.written", "seed.ready", "seed.recorded")}
        assert known == {"ingest.written": False, "seed.ready": False, "seed.recorded": True}, known
        file, theta = check_a_run(pb, programs, folder)
        check_an_import(pb, programs, folder, file, theta)
    print(f"killed while it was seeded: the model is known after {[fault for fault, there in known.items() if there]}; "
          f"{ROUNDS} versions are numpy's, and an export began another run")


if __name__ == "__main__":
    main()
