#!/usr/bin/env python3
"""A worker that shares nothing with ours but the .proto files, against the real coordinator program.

python_client.py COORDINATOR PROTOC GRPC_PYTHON_PLUGIN PROTO_DIR WELL_KNOWN_DIR

Joins, seeds the run, pulls, checks every chunk and the whole, pushes, is acknowledged, takes Nesterov's step by hand
and compares it with the version it pulls. Exit code 77: python3 here lacks grpc, protobuf or xxhash.
"""
import array
import hashlib
import json
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from crc32c import crc32c  # noqa: E402

try:
    import grpc
    import google.protobuf  # noqa: F401
    import xxhash
except ImportError as missing:
    print(f"skipped: {missing} (scripts/setup.sh installs python3-grpcio, python3-protobuf, python3-xxhash)")
    sys.exit(77)

CONFIG = """
run: {name: python, workers: 1, rounds: 100}
model: {gpt: {layers: 1, heads: 1, width: 32, context: 16, vocabulary: 256}}
data: {tokenizer: bytes, mode: local}
inner: {steps: 2, learning_rate: 1e-3, batch: 2}
outer: {learning_rate: 0.7, momentum: 0.9}
codec: {push: fp32, pull_delta: none, zstd: true}
evaluation: {every: 1000}
round: {deadline_s: 60, grace_s: 0, lease_s: 120}
"""
CHUNK = 1 << 20
# Tensors begin at multiples of 256 values in the flat vector (core/fragment_plan.h).
SLOT = 256
TENSORS = [("matrix", (700, 500)), ("vector", (333,))]


def content_hash(payload):
    """common/content_hash.h: XXH3-128 over the digests of blocks of 1 MiB, then over the length."""
    words = b""
    for at in range(0, len(payload), CHUNK):
        digest = xxhash.xxh3_128_intdigest(payload[at:at + CHUNK])
        words += struct.pack("<QQ", digest & (1 << 64) - 1, digest >> 64)
    digest = xxhash.xxh3_128_intdigest(words + struct.pack("<Q", len(payload)))
    return digest & (1 << 64) - 1, digest >> 64


def generate(protoc, plugin, protos, well_known, out):
    files = ["atoll/v1/rule.proto", "atoll/v1/run.proto", "atoll/v1/types.proto", "atoll/v1/coordinator.proto"]
    subprocess.run([protoc, f"--python_out={out}", f"--grpc_python_out={out}",
                    f"--plugin=protoc-gen-grpc_python={plugin}", "-I", protos, "-I", well_known, *files], check=True)
    sys.path.insert(0, out)


class Coordinator:
    def __init__(self, program, folder):
        (folder / "run.yaml").write_text(CONFIG)
        ports = folder / "ports"
        self.log = folder / "log"
        self.process = subprocess.Popen(
            [program, "--config", folder / "run.yaml", "--data-dir", folder / "data", "--listen", "127.0.0.1:0",
             "--admin-listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--port-file", ports],
            stdout=self.log.open("w"), stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        while not ports.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the coordinator does not serve:\n" + self.log.read_text())
            time.sleep(0.01)
        self.address = json.loads(ports.read_text())["data"]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


def chunks_of(make, payload, fields):
    for at in range(0, len(payload), CHUNK):
        piece = payload[at:at + CHUNK]
        yield make(offset=at, data=piece, crc32c=crc32c(piece), **fields)


class Worker:
    def __init__(self, pb, stub):
        self.pb, self.stub = pb, stub
        types = pb["types"]
        self.manifest = types.Manifest(
            tensors=[types.TensorSpec(name=name, shape=shape) for name, shape in TENSORS])
        text = "".join(f"{name} {' '.join(map(str, shape))}\n" for name, shape in TENSORS)
        self.manifest_hash = hashlib.sha256(text.encode()).hexdigest()
        sizes = [shape[0] * (shape[1] if len(shape) > 1 else 1) for _, shape in TENSORS]
        self.elements = sum(-(-size // SLOT) * SLOT for size in sizes)
        # Padding stays zero.
        self.filled = [i for start, size in zip((0, -(-sizes[0] // SLOT) * SLOT), sizes) for i in
                       range(start, start + size)]

    def vector(self, value):
        values = array.array("f", bytes(4 * self.elements))
        for i in self.filled:
            values[i] = value(i)
        return values

    def join(self):
        c = self.pb["coordinator"]
        request = c.JoinRequest(worker="py", secret=b"0123456789abcdef", role=self.pb["types"].ROLE_TRAINER)
        request.protocol.major = 1
        described = self.stub.Join(request, timeout=30)
        assert described.run_id and described.config.run.name == "python", described
        request.manifest_hash = self.manifest_hash
        joined = self.stub.Join(request, timeout=30)
        assert joined.incarnation > 0, joined
        self.me = self.pb["types"].WorkerRef(run_id=joined.run_id, epoch=joined.epoch, worker="py",
                                             incarnation=joined.incarnation)
        return joined

    def seed(self, values):
        c = self.pb["coordinator"]

        def messages():
            yield c.SeedChunk(header=c.SeedHeader(worker=self.me, manifest=self.manifest))
            yield from chunks_of(c.SeedChunk, values.tobytes(), {"fragment": 0})

        reply = self.stub.SeedParameters(messages(), timeout=60)
        assert reply.fragments[0].elements == self.elements, reply
        return reply

    def pull(self, after=None):
        c = self.pb["coordinator"]
        request = c.PullRequest(worker=self.me, fragment=0, wait_ms=30000)
        if after is not None:
            request.after_version = after
        payload, header = b"", None
        for message in self.stub.Pull(request, timeout=60):
            if header is None:
                header = message.header
                assert message.HasField("header") and header.outcome == c.PullHeader.PARAMETERS, header
                continue
            assert not message.HasField("header") and message.compression == c.COMPRESSION_NONE
            assert message.offset == len(payload) and 0 < len(message.data) <= CHUNK
            assert message.crc32c == crc32c(message.data), message.offset
            payload += message.data
        assert len(payload) == header.payload_bytes == 4 * self.elements
        assert content_hash(payload) == (header.published.low, header.published.high)
        values = array.array("f")
        values.frombytes(payload)
        return header, values

    def push(self, base, values, mutate=lambda message: message, fields=None):
        c = self.pb["coordinator"]
        payload = values.tobytes()
        header = c.PushHeader(worker=self.me, fragment=0, base_version=base, codec=self.pb["run"].CODEC_FP32,
                              payload_bytes=len(payload), payload_crc32c=crc32c(payload), tokens=64, steps=2)

        def messages():
            yield c.PushChunk(header=header)
            for message in chunks_of(c.PushChunk, payload, fields or {}):
                yield mutate(message)

        return self.stub.Push(messages(), timeout=60)


def refused(call, code):
    try:
        call()
    except grpc.RpcError as error:
        assert error.code() == code, error
        return
    raise AssertionError(f"not refused with {code}")


def exchange(worker):
    pb = worker.pb["coordinator"]
    worker.join()
    theta = worker.vector(lambda i: (i % 17) / 16 - 0.5)
    worker.seed(theta)
    header, pulled = worker.pull()
    assert header.version == 0 and pulled == theta
    delta = worker.vector(lambda i: (i % 5) / 64)

    def damage(message):
        message.crc32c ^= 1
        return message

    refused(lambda: worker.push(0, delta, mutate=damage), grpc.StatusCode.DATA_LOSS)
    refused(lambda: worker.push(0, delta, fields={"compression": pb.COMPRESSION_ZSTD, "uncompressed_bytes": 5}),
            grpc.StatusCode.INVALID_ARGUMENT)
    reply = worker.push(0, delta)
    assert not reply.duplicate and reply.arrived == 1, reply
    assert worker.push(0, delta).duplicate
    header, pulled = worker.pull(after=0)
    assert header.version == 1, header
    for i in range(0, worker.elements, 97):
        # v = delta; theta - 0.7 * (delta + 0.9 * v), PyTorch's Nesterov.
        expected = theta[i] - 0.7 * (delta[i] + 0.9 * delta[i])
        assert abs(pulled[i] - expected) < 1e-6, (i, pulled[i], expected)
    worker.stub.Leave(pb.LeaveRequest(worker=worker.me, reason="done"), timeout=30)


def main():
    program, protoc, plugin, protos, well_known = sys.argv[1:6]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        generated = folder / "generated"
        generated.mkdir()
        generate(protoc, plugin, protos, well_known, str(generated))
        import atoll.v1.coordinator_pb2 as coordinator_pb
        import atoll.v1.coordinator_pb2_grpc as rpc
        import atoll.v1.run_pb2 as run_pb
        import atoll.v1.types_pb2 as types_pb
        coordinator = Coordinator(program, folder)
        try:
            with grpc.insecure_channel(coordinator.address, options=[("grpc.enable_http_proxy", 0)]) as channel:
                pb = {"coordinator": coordinator_pb, "run": run_pb, "types": types_pb}
                exchange(Worker(pb, rpc.CoordinatorStub(channel)))
        except Exception:
            print(coordinator.log.read_text())
            raise
        finally:
            code = coordinator.stop()
        assert code == 0, code
    print("a client of another language joined, seeded, pulled, pushed and was counted")


if __name__ == "__main__":
    main()
