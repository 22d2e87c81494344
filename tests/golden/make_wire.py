#!/usr/bin/env python3
"""Writes tests/golden/wire/*.hex from the encoding rules of Protocol Buffers, with no protobuf library: an independent
statement of the bytes that tests/protos/wire_golden_test.cc expects of the generated code."""

import pathlib
import struct


def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def fixed64(field, n):
    return varint(field << 3 | 1) + struct.pack("<Q", n)


def double(field, x):
    return varint(field << 3 | 1) + struct.pack("<d", x)


def fixed32(field, n):
    return varint(field << 3 | 5) + struct.pack("<I", n)


def text(field, s):
    data = s if isinstance(s, bytes) else s.encode()
    return varint(field << 3 | 2) + varint(len(data)) + data


SOMEONE = text(1, "0123456789abcdef") + fixed64(2, 0x1122334455667788) + text(3, "w0") + number(4, 3)
CRC = 0xE3069283

MESSAGES = {
    "push_header": text(1, text(1, SOMEONE) + number(2, 1) + number(3, 300) + number(4, 2) + number(5, 4)
                        + number(6, 1 << 20) + fixed32(7, CRC) + number(8, 38400) + number(9, 50) + number(10, 600)
                        + double(11, 2.5)),
    "push_data": number(2, 1 << 20) + text(3, "123456789") + fixed32(4, CRC),
    "pull_header": text(1, number(1, 1) + fixed64(2, 0x1122334455667788) + number(3, 12) + number(4, 1) + number(5, 4096)
                        + number(6, 16384) + text(7, fixed64(1, 1) + fixed64(2, 2))
                        + text(8, number(1, 50) + number(2, 4) + number(3, 1000000) + number(4, 3072000) + number(5, 1)
                               + double(6, 600.0)) + number(9, 2)),
    "seed_header": text(1, text(1, SOMEONE)
                        + text(2, text(1, text(1, "transformer.wte.weight") + text(2, varint(256) + varint(128))
                                       + number(3, 1)))),
    "join": text(1, number(1, 1)) + text(2, "w0") + text(3, "0123456789abcdef") + number(4, 1) + text(5, "ab")
            + text(7, text(1, "bytes") + number(2, 256)),
}

folder = pathlib.Path(__file__).parent / "wire"
folder.mkdir(exist_ok=True)
for name, message in MESSAGES.items():
    digits = message.hex()
    (folder / f"{name}.hex").write_text("\n".join(digits[i:i + 64] for i in range(0, len(digits), 64)) + "\n")
