"""A worker for any model that is a list of float32 arrays, built of the .proto files, numpy and gRPC alone."""
import hashlib
import pathlib
import subprocess
import sys

import grpc
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from crc32c import crc32c  # noqa: E402

CHUNK = 1 << 20
SLOT = 256  # tensors begin at multiples of it in the flat vector (core/fragment_plan.h)
FILES = ("rule", "run", "types", "coordinator")


def generate(protoc, plugin, protos, well_known, out):
    """The modules of the protocol, by the last word of their names."""
    subprocess.run([protoc, f"--python_out={out}", f"--grpc_python_out={out}", f"--plugin=protoc-gen-grpc_python={plugin}",
                    "-I", protos, "-I", well_known, *(f"atoll/v1/{name}.proto" for name in FILES)], check=True)
    sys.path.insert(0, str(out))
    import atoll.v1.coordinator_pb2 as coordinator
    import atoll.v1.coordinator_pb2_grpc as rpc
    import atoll.v1.run_pb2 as run
    import atoll.v1.types_pb2 as types
    return {"coordinator": coordinator, "rpc": rpc, "run": run, "types": types}


def manifest_of(pb, arrays, embeddings=(), base=""):
    return pb["types"].Manifest(base_fingerprint=base, tensors=[
        pb["types"].TensorSpec(name=name, shape=array.shape, embedding=name in embeddings) for name, array in arrays.items()])


def hash_of(manifest):
    lines = [" ".join([t.name, *map(str, t.shape), *(["embedding"] if t.embedding else [])]) for t in manifest.tensors]
    if manifest.base_fingerprint:
        lines.append(f"base {manifest.base_fingerprint}")
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def flat_of(arrays):
    parts = []
    for array in arrays.values():
        values = array.astype("<f4").ravel()
        parts += [values, np.zeros(-len(values) % SLOT, "<f4")]
    return np.concatenate(parts)


def arrays_of(flat, shapes):
    arrays, at = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod(shape, dtype=int))
        arrays[name] = flat[at:at + size].reshape(shape)
        at += size + -size % SLOT
    return arrays


class ArrayClient:
    def __init__(self, pb, address, name, manifest):
        self.pb, self.name, self.manifest = pb, name, manifest
        self.channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
        self.stub = pb["rpc"].CoordinatorStub(self.channel)

    def close(self):
        self.channel.close()

    def _request(self):
        request = self.pb["coordinator"].JoinRequest(
            worker=self.name, secret=hashlib.sha256(self.name.encode()).digest(), role=self.pb["types"].ROLE_TRAINER)
        request.protocol.major = 1
        return request

    def describe(self):
        return self.stub.Join(self._request(), timeout=30)

    def join(self, hash_only=False):
        request = self._request()
        if hash_only:
            request.manifest_hash = hash_of(self.manifest)
        else:
            request.manifest.CopyFrom(self.manifest)
        joined = self.stub.Join(request, timeout=30)
        self.partition = joined.data.partition if joined.HasField("data") else None
        self.me = self.pb["types"].WorkerRef(run_id=joined.run_id, epoch=joined.epoch, worker=self.name,
                                             incarnation=joined.incarnation)
        return joined

    def _chunks(self, make, payload, **fields):
        for at in range(0, len(payload), CHUNK):
            piece = payload[at:at + CHUNK]
            yield make(offset=at, data=piece, crc32c=crc32c(piece), **fields)

    def seed(self, flat):
        c = self.pb["coordinator"]

        def messages():
            yield c.SeedChunk(header=c.SeedHeader(worker=self.me, manifest=self.manifest))
            yield from self._chunks(c.SeedChunk, flat.tobytes(), fragment=0)

        return self.stub.SeedParameters(messages(), timeout=60)

    def pull(self, after=None):
        """The header, and the values when there are some."""
        request = self.pb["coordinator"].PullRequest(worker=self.me, fragment=0, wait_ms=30000)
        if after is not None:
            request.after_version = after
        header, payload = None, b""
        for message in self.stub.Pull(request, timeout=60):
            if header is None:
                header = message.header
                continue
            assert message.offset == len(payload) and message.crc32c == crc32c(message.data), message.offset
            payload += message.data
        assert len(payload) == header.payload_bytes, header
        return header, np.frombuffer(payload, "<f4")

    def push(self, base, delta, steps, tokens, samples, loss):
        c = self.pb["coordinator"]
        payload = delta.astype("<f4").tobytes()
        header = c.PushHeader(worker=self.me, fragment=0, base_version=base, codec=self.pb["run"].CODEC_FP32,
                              payload_bytes=len(payload), payload_crc32c=crc32c(payload), tokens=tokens, steps=steps,
                              mean_loss=loss, samples_consumed=samples)
        if self.partition is not None:
            header.partition = self.partition

        def messages():
            yield c.PushChunk(header=header)
            yield from self._chunks(c.PushChunk, payload)

        return self.stub.Push(messages(), timeout=60)

    def heartbeat(self, evaluations):
        request = self.pb["coordinator"].HeartbeatRequest(worker=self.me)
        for version, loss, tokens in evaluations:
            request.evaluations.add(version=version, loss=loss, tokens=tokens)
        return self.stub.Heartbeat(request, timeout=30)

    def leave(self):
        self.stub.Leave(self.pb["coordinator"].LeaveRequest(worker=self.me, reason="done"), timeout=30)
