"""The wire format of Protocol Buffers without a library, for tests that speak a protocol by hand: an independent statement
of the bytes (protobuf.dev/programming-guides/encoding). tests/protobuf_test.py holds it against the examples of that page."""
import struct

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_SIZES = {FIXED64: 8, FIXED32: 4}


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """A number as varint; text, bytes and messages with a length."""
    if isinstance(value, int):
        return varint(number << 3 | VARINT) + varint(value)
    data = value if isinstance(value, bytes) else value.encode()
    return varint(number << 3 | LENGTH) + varint(len(data)) + data


def fixed32(number, value):
    return varint(number << 3 | FIXED32) + struct.pack("<I", value)


def fixed64(number, value):
    return varint(number << 3 | FIXED64) + struct.pack("<Q", value)


def double(number, value):
    return varint(number << 3 | FIXED64) + struct.pack("<d", value)


def _read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _read(data):
    """(number, kind, value) of every field; the value of all but varints as bytes."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = _read_varint(data, at)
        else:
            if kind == LENGTH:
                size, at = _read_varint(data, at)
            elif kind in _SIZES:
                size = _SIZES[kind]
            else:
                raise ValueError(f"wire type {kind}")
            if at + size > len(data):
                raise ValueError(f"field {number} ends behind the message")
            value, at = data[at:at + size], at + size
        yield number, kind, value


def fields(data):
    """(number, value) of every field in order: a varint as int, everything else as bytes."""
    for number, _, value in _read(data):
        yield number, value


def parse(data):
    """Fields of a message by number, each a list of what stands there; fixed32 and fixed64 as unsigned ints."""
    found = {}
    for number, kind, value in _read(data):
        if kind in _SIZES:
            value = int.from_bytes(value, "little")
        found.setdefault(number, []).append(value)
    return found
