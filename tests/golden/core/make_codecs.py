#!/usr/bin/env python3
"""Writes fp32.hex, fp16.hex, bf16.hex and int8.hex: the payloads of one fixed vector, in exact arithmetic.

An implementation of docs/codecs.md that shares nothing with core/: the tests compare its bytes with ours. The files are
frozen; run this only when a format changes on purpose.
"""

import pathlib
import struct
from fractions import Fraction

VALUES = [((i * 7919) % 2001 - 1000) / 1024 * 2.0 ** (i % 13 - 8) for i in range(800)]
VALUES[3] = 0.0
VALUES[4] = -0.0
VALUES[790] = 1e6  # beyond fp16: saturates
VALUES[6] = 2.0 ** -24  # fp16's smallest subnormal
VALUES[7] = 2.0 ** -25  # a tie between 0 and that
VALUES[256:512] = [0.0] * 256  # a block of zeros


def f32(x):
    """The float32 nearest to a fraction or float, ties to even."""
    return struct.unpack("<f", struct.pack("<f", float(x)))[0]


def fp16(x):
    return struct.pack("<e", max(-65504.0, min(65504.0, x)))


def bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    high, low = bits >> 16, bits & 0xFFFF
    if low > 0x8000 or (low == 0x8000 and high & 1):
        high += 1
    return struct.pack("<H", high)


def int8(values):
    out = b""
    for first in range(0, len(values), 256):
        block = values[first : first + 256]
        # float64 holds a quotient of float32 values well enough that rounding it again is correct.
        scale = f32(max(abs(v) for v in block) / 127.0)
        out += struct.pack("<f", scale)
        for v in block:
            level = round(Fraction(f32(v / scale))) if scale else 0
            out += struct.pack("<b", max(-127, min(127, level)))
    return out


def write(name, data):
    lines = [data[i : i + 32].hex() for i in range(0, len(data), 32)]
    (pathlib.Path(__file__).parent / f"{name}.hex").write_text("\n".join(lines) + "\n")


values = [f32(v) for v in VALUES]
write("fp32", b"".join(struct.pack("<f", v) for v in values))
write("fp16", b"".join(fp16(v) for v in values))
write("bf16", b"".join(bf16(v) for v in values))
write("int8", int8(values))
