#!/usr/bin/env python3
"""Writes unicode_runs.inc and nfc_tables.inc: what the tokenizers need of one pinned version of Unicode.

Usage: generate_tables.py [--check]. Needs unicodedata2 of that version (scripts/interop.txt).

--check writes nothing; exit code 1 when a file is not what this script would write.
"""
import argparse
import pathlib
import sys

import unicodedata2

FOLDER = pathlib.Path(__file__).resolve().parent
VERSION = "16.0.0"
POINTS = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]

# The bits of unicode_classes.h.
UPPER, LOWER, OTHER_LETTER, MARK, NUMBER, SPACE, NEWLINE, NEW_NUMBER = (1 << bit for bit in range(8))
BITS = {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Lm": OTHER_LETTER, "Lo": OTHER_LETTER, "Mn": MARK, "Mc": MARK, "Me": MARK,
        "Nd": NUMBER, "Nl": NUMBER, "No": NUMBER, "Zs": SPACE, "Zl": SPACE, "Zp": SPACE}
# White_Space also has these controls.
WHITE_CONTROLS = (0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x85)
# Numbers that came with Unicode 17. The pre-tokenizer Digits asks Rust's standard library, which knows them already.
NEW_NUMBERS = (*range(0x11DE0, 0x11DEA), *range(0x16FF4, 0x16FF7))
# Marks and composed characters that came after Unicode 9. The tables of tokenizers' NFC are of Unicode 9, so it leaves them as
# they are. No character that Unicode 9 has ever changes its normal form.
NFC_UNKNOWN = [
    (0x7FD, 0x7FD), (0x897, 0x89F), (0x8CA, 0x8D3), (0x9FE, 0x9FE), (0xC3C, 0xC3C), (0xD3B, 0xD3C), (0xEBA, 0xEBA),
    (0x1715, 0x1715), (0x1ABF, 0x1ACE), (0x1DF6, 0x1DFA), (0xA82C, 0xA82C), (0x105C9, 0x105C9), (0x105E4, 0x105E4),
    (0x10D24, 0x10D27), (0x10D69, 0x10D6D), (0x10EAB, 0x10EAC), (0x10EFD, 0x10EFF), (0x10F46, 0x10F50), (0x10F82, 0x10F85),
    (0x11070, 0x11070), (0x1133B, 0x1133B), (0x11383, 0x11383), (0x11385, 0x11385), (0x1138E, 0x1138E), (0x11391, 0x11391),
    (0x113C5, 0x113C5), (0x113C7, 0x113C8), (0x113CE, 0x113D0), (0x1145E, 0x1145E), (0x11839, 0x1183A), (0x11938, 0x11938),
    (0x1193D, 0x1193E), (0x11943, 0x11943), (0x119E0, 0x119E0), (0x11A34, 0x11A34), (0x11A47, 0x11A47), (0x11A99, 0x11A99),
    (0x11D42, 0x11D42), (0x11D44, 0x11D45), (0x11D97, 0x11D97), (0x11F41, 0x11F42), (0x16121, 0x16128), (0x1612F, 0x1612F),
    (0x16D68, 0x16D6A), (0x16FF0, 0x16FF1), (0x1E08F, 0x1E08F), (0x1E130, 0x1E136), (0x1E2AE, 0x1E2AE), (0x1E2EC, 0x1E2EF),
    (0x1E4EC, 0x1E4EF), (0x1E5EE, 0x1E5EF),
]


def class_of(point):
    bits = BITS.get(unicodedata2.category(chr(point)), 0)
    if point in WHITE_CONTROLS:
        bits |= SPACE
    if point in (0x0A, 0x0D):
        bits |= NEWLINE
    if point in NEW_NUMBERS:
        bits |= NEW_NUMBER
    return bits


def runs(value_of):
    """(first code point, value) of each run of equal values."""
    found = []
    for point in POINTS:
        value = value_of(point)
        if not found or found[-1][1] != value:
            found.append((point, value))
    return found


def nfc_knows(point):
    return not any(first <= point <= last for first, last in NFC_UNKNOWN)


def decompositions():
    """(code point, first, second or 0, whether NFC composes the two) of each canonical decomposition but Hangul's."""
    found = []
    for point in POINTS:
        mapping = unicodedata2.decomposition(chr(point))
        if not mapping or mapping.startswith("<") or not nfc_knows(point):
            continue
        parts = [int(part, 16) for part in mapping.split()]
        first, second = parts if len(parts) == 2 else (parts[0], 0)
        composes = len(parts) == 2 and unicodedata2.normalize("NFC", chr(first) + chr(second)) == chr(point)
        found.append((point, first, second, int(composes)))
    return found


def array(kind, name, numbers, comment):
    lines, line = [f"// {comment}", f"constexpr {kind} {name}[] = {{"], " "
    for number in numbers:
        word = f" {number:#x},"
        if len(line) + len(word) > 118:
            lines.append(line)
            line = " "
        line += word
    return "\n".join(lines + [line, "};", ""])


def files():
    head = f"// Written by generate_tables.py from Unicode {VERSION}; do not edit.\n"
    marks = runs(lambda point: unicodedata2.combining(chr(point)) if nfc_knows(point) else 0)
    yield "unicode_runs.inc", head + array(
        "uint32_t", "kClassRuns", [point << 8 | value for point, value in runs(class_of)],
        "First code point << 8 | its class, for each run of equal classes.")
    yield "nfc_tables.inc", head + array(
        "uint32_t", "kCombiningRuns", [point << 8 | value for point, value in marks],
        "First code point << 8 | its combining class, for each run of equal ones.") + array(
        "uint32_t", "kDecompositions", [number for point, first, second, composes in decompositions()
                                        for number in (point << 1 | composes, first, second)],
        "Three numbers each: code point << 1 | whether the two compose again, first, second or 0.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if unicodedata2.unidata_version != VERSION:
        sys.exit(f"unicodedata2 has Unicode {unicodedata2.unidata_version}; install unicodedata2=={VERSION}")
    wrong = []
    for name, text in files():
        path = FOLDER / name
        if arguments.check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                wrong.append(name)
        else:
            path.write_text(text, encoding="utf-8")
    if wrong:
        sys.exit(f"not what {pathlib.Path(__file__).name} writes: {', '.join(wrong)}; run it and commit the files")


if __name__ == "__main__":
    main()
