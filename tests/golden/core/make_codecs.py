#!/usr/bin/env python3
"""Writes one .hex file per codec: the payloads of one fixed vector, in exact arithmetic.

An implementation of docs/reference/codecs.md that shares nothing with core/: the tests compare its bytes with ours. The files are
frozen; run this only when a format changes on purpose.
"""

import math
import pathlib
import struct
from fractions import Fraction

def golden_values(n):
    values = [((i * 7919) % 2001 - 1000) / 1024 * 2.0 ** (i % 13 - 8) for i in range(n)]
    values[3] = 0.0
    values[4] = -0.0
    values[790] = 1e6  # beyond fp16: saturates
    values[6] = 2.0 ** -24  # fp16's smallest subnormal
    values[7] = 2.0 ** -25  # a tie between 0 and that
    values[256:512] = [0.0] * 256  # a block of zeros
    return [f32(v) for v in values]


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


def norm(values):
    squares = 0.0
    for block in blocks(values, 4096):
        s = [0.0] * 8
        for i, v in enumerate(block):
            s[i % 8] += v * v
        squares += ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
    return math.sqrt(squares)


def int8_quantile(values):
    out = b""
    for section in blocks(values, 65536):
        scale = f32(6 * (norm(section) / math.sqrt(max(len(section) - 1, 1))) / 256)
        codes = []
        for v in section:
            quotient = max(Fraction(-128), min(Fraction(128), Fraction(f32(Fraction(v) / Fraction(scale)))))
            codes.append(min(round(quotient) + 128, 255))
        book = []
        for code in range(256):
            total, count = 0.0, 0
            for v, c in zip(section, codes):
                if c == code:
                    total, count = total + v, count + 1
            book.append(f32(total / count) if count and code != 128 else 0.0)
        out += struct.pack("<256f", *book) + bytes(codes)
    return out


def pack_bits(numbers, width):
    whole = sum(number << (i * width) for i, number in enumerate(numbers))
    return whole.to_bytes((len(numbers) * width + 7) // 8, "little")


def positions(held, size, low_bits):
    upper = sum(1 << ((p >> low_bits) + i) for i, p in enumerate(held))
    upper_bits = len(held) + -(-size // 2**low_bits)
    return upper.to_bytes((upper_bits + 7) // 8, "little") + pack_bits([p % 2**low_bits for p in held], low_bits)


def mean(numbers):
    total = 0.0
    for number in numbers:
        total += number
    return total / len(numbers) if numbers else 0.0


def two_bits(values):
    magnitudes = [abs(v) for v in values]
    groups = lambda at: ([m for m in magnitudes if m < at], [m for m in magnitudes if m >= at])
    at = 2.0**-149 if 0.0 in magnitudes else mean(magnitudes)
    if 0.0 not in magnitudes:
        for _ in range(3):
            low, high = groups(at)
            at = (mean(low) + mean(high)) / 2
    low, high = groups(at)
    codes = [(1 if abs(v) >= at else 0) | (2 if v < 0 else 0) for v in values]
    return struct.pack("<ff", f32(mean(low)), f32(mean(high))) + pack_bits(codes, 2)


def topk(values, k, write_values):
    out = b""
    for block in blocks(values, 4096):
        count = -(-k * len(block) // 4096)
        held = sorted(sorted(range(len(block)), key=lambda i: (-abs(block[i]), i))[:count])
        out += positions(held, len(block), {64: 6, 128: 5}[k]) + write_values([block[i] for i in held])
    return out


def write(name, data):
    lines = [data[i : i + 32].hex() for i in range(0, len(data), 32)]
    (pathlib.Path(__file__).parent / f"{name}.hex").write_text("\n".join(lines) + "\n")


values = golden_values(800)
write("fp32", b"".join(struct.pack("<f", v) for v in values))
write("fp16", b"".join(fp16(v) for v in values))
write("bf16", b"".join(bf16(v) for v in values))
write("int8", int8(values))
write("int4", int4(values))
write("e3m0", e3m0(values))
write("int8_quantile", int8_quantile(values))
values = golden_values(5000)  # more than a block of 4096
for k in (64, 128):
    write(f"topk{k}", topk(values, k, two_bits))
    write(f"topk{k}_bf16", topk(values, k, lambda held: b"".join(bf16(v) for v in held)))
