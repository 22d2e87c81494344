"""A coordinator that lies, made of the real one and a proxy on the wire: the worker behind the proxy is served parameters of its
own, with checksums and hashes that fit, and never hears that it differs.

Ways to hide it from that worker when it asks what the others signed:
  open     nothing is hidden
  forge    the others' hashes are replaced by the ones this worker was served; nobody signed them
  invent   the same, signed with keys that the proxy made, which it shows as the others' keys
  honest   no lie at all: the proxy only passes on
  hang     the same, but that question is never answered
"""
import hashlib
import pathlib
import struct
import subprocess
import sys
import threading
import time
from concurrent import futures

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from crc32c import crc32c  # noqa: E402

import grpc  # noqa: E402
import xxhash  # noqa: E402

SERVICE = "/atoll.v1.Coordinator/"
CHUNK = 1 << 20


def generate(out):
    """The messages, from the .proto files."""
    root = pathlib.Path(__file__).resolve().parents[3]
    files = ["atoll/v1/rule.proto", "atoll/v1/run.proto", "atoll/v1/types.proto", "atoll/v1/coordinator.proto"]
    subprocess.run(["protoc", f"--python_out={out}", "-I", root / "protos", "-I", "/usr/include", *files], check=True)
    sys.path.insert(0, str(out))
    from atoll.v1 import coordinator_pb2, types_pb2
    return coordinator_pb2, types_pb2


def content_hash(payload):
    """common/content_hash.h: XXH3-128 over the digests of blocks of 1 MiB, then over the length."""
    words = b""
    for at in range(0, len(payload), CHUNK):
        digest = xxhash.xxh3_128_intdigest(payload[at:at + CHUNK])
        words += struct.pack("<QQ", digest & (1 << 64) - 1, digest >> 64)
    digest = xxhash.xxh3_128_intdigest(words + struct.pack("<Q", len(payload)))
    return digest & (1 << 64) - 1, digest >> 64


class InventedKey:
    """An Ed25519 key in a file, by openssl."""

    def __init__(self, folder, name):
        self.file = folder / f"{name}.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.file], check=True)
        der = subprocess.run(["openssl", "pkey", "-in", self.file, "-pubout", "-outform", "DER"], check=True,
                             capture_output=True).stdout
        self.public = der[-32:]

    def sign(self, text):
        message = self.file.with_suffix(".text")
        message.write_bytes(text)
        return subprocess.run(["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", self.file, "-in", message], check=True,
                              capture_output=True).stdout


class LyingProxy(grpc.GenericRpcHandler):
    def __init__(self, address, way, folder):
        self.way, self.folder = way, folder
        self.pb, self.types = generate(folder)
        self.channel = grpc.insecure_channel(address)
        self.honest = way in ("honest", "hang")
        self.served, self.keys, self.lies, self.hung = {}, {}, 0, 0
        self.lock = threading.Lock()
        self.server = grpc.server(futures.ThreadPoolExecutor(16))
        self.server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def stop(self):
        self.server.stop(0).wait()
        self.channel.close()

    def service(self, call):
        method = call.method.removeprefix(SERVICE)
        if method in ("Push", "SeedParameters"):
            return grpc.stream_unary_rpc_method_handler(
                lambda messages, context: self.pass_on(self.channel.stream_unary(call.method), messages, context))
        if method == "Pull":
            return grpc.unary_stream_rpc_method_handler(lambda request, context: self.pull(call.method, request, context))
        if method == "GetConfirmations" and self.way == "hang":
            return grpc.unary_unary_rpc_method_handler(self.hang)
        unary = self.channel.unary_unary(call.method)
        change = {"Heartbeat": self.change_heartbeat, "GetConfirmations": self.change_confirmations}.get(method, lambda reply: reply)
        return grpc.unary_unary_rpc_method_handler(lambda request, context: change(self.pass_on(unary, request, context)))

    def hang(self, request, context):
        with self.lock:
            self.hung += 1
        while context.is_active():
            time.sleep(0.05)
        context.abort(grpc.StatusCode.CANCELLED, "nobody waits for the answer any more")

    @staticmethod
    def pass_on(method, request, context):
        try:
            return method(request, timeout=120)
        except grpc.RpcError as error:
            # The reason of a refusal travels in the trailing metadata.
            context.set_trailing_metadata(error.trailing_metadata() or ())
            context.abort(error.code(), error.details())

    def pull(self, method, request, context):
        stream = self.channel.unary_stream(method)(request, timeout=120)
        context.add_callback(stream.cancel)
        try:
            messages = [self.pb.PullChunk.FromString(data) for data in stream]
        except grpc.RpcError as error:
            context.set_trailing_metadata(error.trailing_metadata() or ())
            context.abort(error.code(), error.details())
        if not self.honest and messages[0].header.outcome == self.pb.PullHeader.PARAMETERS:
            self.lie(messages)
        yield from (message.SerializeToString() for message in messages)

    def lie(self, messages):
        """Another value in the middle of the payload, and everything that is computed of it."""
        header = messages[0].header
        payload = bytearray(b"".join(message.data for message in messages[1:]))
        at = len(payload) // 8 * 4
        payload[at] ^= 0x10
        low, high = content_hash(bytes(payload))
        header.published.low, header.published.high = low, high
        for message in messages[1:]:
            message.data = bytes(payload[message.offset:message.offset + len(message.data)])
            message.crc32c = crc32c(message.data)
        with self.lock:
            self.served[header.version] = (low, high)
            self.lies += 1

    def change_heartbeat(self, data):
        reply = self.pb.HeartbeatReply.FromString(data)
        # The real coordinator is honest, and tells the worker to pull again.
        if not self.honest and reply.command == self.types.COMMAND_RESYNC:
            reply.command = self.types.COMMAND_NONE
        return reply.SerializeToString()

    def change_confirmations(self, data):
        if self.way not in ("forge", "invent"):
            return data
        page = self.types.ConfirmationPage.FromString(data)
        for one in page.confirmations:
            with self.lock:
                served = self.served.get(one.confirmation.version)
            if served is None:
                continue
            one.confirmation.published.low, one.confirmation.published.high = served
            if self.way == "invent":
                self.sign(page.run_id, one)
        return page.SerializeToString()

    def sign(self, run_id, one):
        with self.lock:
            if one.worker not in self.keys:
                self.keys[one.worker] = InventedKey(self.folder, "invented-" + hashlib.sha256(one.worker.encode()).hexdigest()[:8])
            key = self.keys[one.worker]
            c = one.confirmation
            text = "".join(f"{part}\n" for part in ("atoll-confirmation/1", run_id, one.epoch, one.worker, c.fragment, c.version,
                                                    c.published.low, c.published.high))
            one.public_key, c.signature = key.public, key.sign(text.encode())
