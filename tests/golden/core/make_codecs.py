#!/usr/bin/env python3
"""Writes one .hex file per codec: the payloads of one fixed vector, in exact arithmetic.

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


def blocks(values, size=256):
    return [values[first : first + size] for first in range(0, len(values), size)]


def nibbles(codes):
    """Byte j: code j below, code j + ceil(m / 2) above."""
    half = (len(codes) + 1) // 2
    upper = codes[half:] + [0] * (len(codes) % 2)
    return bytes(low | high << 4 for low, high in zip(codes[:half], upper))


def int4(values):
    out = b""
    for block in blocks(values):
        scale = f32(Fraction(max(abs(v) for v in block)) / 7)
        levels = [round(Fraction(f32(Fraction(v) / Fraction(scale)))) if scale else 0 for v in block]
        out += struct.pack("<f", scale) + nibbles([max(-7, min(7, level)) & 15 for level in levels])
    return out


def e3m0(values):
    out = b""
    for block in blocks(values):
        scale = max(abs(v) for v in block)
        levels = [Fraction(0)] + [Fraction(scale) / 2 ** (7 - level) for level in range(1, 8)]
        codes = []
        for v in block:
            # Half way between two levels, as a float32, is the upper one's.
            passed = [level for level in range(1, 8) if v and abs(v) >= f32((levels[level - 1] + levels[level]) / 2)]
            level = max(passed, default=0)
            codes.append(level | (8 if level and v < 0 else 0))
        out += struct.pack("<f", scale) + nibbles(codes)
    return out


def write(name, data):
    lines = [data[i : i + 32].hex() for i in range(0, len(data), 32)]
    (pathlib.Path(__file__).parent / f"{name}.hex").write_text("\n".join(lines) + "\n")


values = [f32(v) for v in VALUES]
write("fp32", b"".join(struct.pack("<f", v) for v in values))
write("fp16", b"".join(fp16(v) for v in values))
write("bf16", b"".join(bf16(v) for v in values))
write("int8", int8(values))
write("int4", int4(values))
write("e3m0", e3m0(values))
