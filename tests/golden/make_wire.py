#!/usr/bin/env python3
"""Writes tests/golden/wire/*.hex from the encoding rules of Protocol Buffers, with no protobuf library: an independent
statement of the bytes that tests/protos/wire_golden_test.cc expects of the generated code."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from protobuf import double, field, fixed32, fixed64, varint  # noqa: E402

SOMEONE = field(1, "0123456789abcdef") + fixed64(2, 0x1122334455667788) + field(3, "w0") + field(4, 3)
CRC = 0xE3069283

MESSAGES = {
    "push_header": field(1, field(1, SOMEONE) + field(2, 1) + field(3, 300) + field(4, 2) + field(5, 4)
                        + field(6, 1 << 20) + fixed32(7, CRC) + field(8, 38400) + field(9, 50) + field(10, 600)
                        + double(11, 2.5)),
    "push_data": field(2, 1 << 20) + field(3, "123456789") + fixed32(4, CRC),
    "pull_header": field(1, field(1, 1) + fixed64(2, 0x1122334455667788) + field(3, 12) + field(4, 1) + field(5, 4096)
                        + field(6, 16384) + field(7, fixed64(1, 1) + fixed64(2, 2))
                        + field(8, field(1, 50) + field(2, 4) + field(3, 1000000) + field(4, 3072000) + field(5, 1)
                               + double(6, 600.0)) + field(9, 2)),
    "seed_header": field(1, field(1, SOMEONE)
                        + field(2, field(1, field(1, "transformer.wte.weight") + field(2, varint(256) + varint(128))
                                       + field(3, 1)))),
    "seed_averaged": field(1, field(1, SOMEONE)
                          + field(2, field(1, field(1, "bn.running_mean") + field(2, varint(64)) + field(4, 1)))),
    "join": field(1, field(1, 1)) + field(2, "w0") + field(3, "0123456789abcdef") + field(4, 1) + field(5, "ab")
            + field(7, field(1, "bytes") + field(2, 256)),
}

folder = pathlib.Path(__file__).parent / "wire"
folder.mkdir(exist_ok=True)
for name, message in MESSAGES.items():
    digits = message.hex()
    (folder / f"{name}.hex").write_text("\n".join(digits[i:i + 64] for i in range(0, len(digits), 64)) + "\n")
