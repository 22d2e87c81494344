"""The few messages of atoll.v1 that an attack needs, written by hand: no client of ours sends most of them."""
import hashlib
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from crc32c import crc32c  # noqa: E402
from protobuf import double, field, fixed32, fixed64, parse, varint  # noqa: E402


def manifest(name, dimensions):
    """One tensor: the message, and the hash that a Join names."""
    tensor = field(1, name) + field(2, b"".join(varint(d) for d in dimensions))
    text = f"{name} {' '.join(str(d) for d in dimensions)}\n"
    return field(1, tensor), hashlib.sha256(text.encode()).hexdigest()


def join_request(worker, secret, manifest_hash="", fingerprint="f", role=1):
    dataset = field(1, "bytes") + field(2, 256) + field(3, 100000) + field(4, fingerprint)
    return (field(1, field(1, 1)) + field(2, worker) + field(3, secret) + field(4, role) +
            field(5, manifest_hash) + field(7, dataset))


class Member:
    """What Join answered, and the WorkerRef of every later call."""

    def __init__(self, worker, reply):
        fields = parse(reply)
        self.worker = worker
        self.seed_granted = bool(fields.get(13, [0])[0])
        self.reference = (field(1, fields[2][0]) + fixed64(2, fields[3][0]) + field(3, worker) +
                          field(4, fields.get(4, [0])[0]))


def push_header(member, codec, payload_bytes, payload_crc32c=0, base=0, tokens=1, steps=1, sequence=0, fragment=0,
                loss=0.0):
    return field(1, field(1, member.reference) + field(2, fragment) + field(3, base) + field(4, sequence) +
                 field(5, codec) + field(6, payload_bytes) + fixed32(7, payload_crc32c) + field(8, tokens) +
                 field(9, steps) + field(10, steps) + double(11, loss) + field(12, 0))


def chunk(offset, data, crc=None, compression=0, uncompressed=0):
    out = field(2, offset) + fixed32(4, crc32c(data) if crc is None else crc)
    if compression:
        out += field(5, compression) + field(6, uncompressed)
    return out + field(3, data)


def zstd_bomb(blocks):
    """One frame (RFC 8878) that unpacks to `blocks` * 128 KiB, in four bytes for each."""
    size = blocks * (128 << 10)
    out = [b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", size)]
    for i in range(blocks):
        out.append(struct.pack("<I", (128 << 10) << 3 | 2 | (i + 1 == blocks))[:3] + b"\0")
    return b"".join(out)
