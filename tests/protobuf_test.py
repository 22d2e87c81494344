#!/usr/bin/env python3
"""tests/protobuf.py against the examples of protobuf.dev/programming-guides/encoding."""
import unittest

import protobuf


class ProtobufTest(unittest.TestCase):
    def test_examples_of_the_specification(self):
        self.assertEqual(protobuf.field(1, 150), bytes.fromhex("089601"))
        self.assertEqual(protobuf.field(2, "testing"), bytes.fromhex("120774657374696e67"))
        self.assertEqual(protobuf.field(3, protobuf.field(1, 150)), bytes.fromhex("1a03089601"))

    def test_every_kind_is_read_back(self):
        message = (protobuf.field(1, (1 << 64) - 1) + protobuf.fixed64(2, 7) + protobuf.field(3, b"ab") +
                   protobuf.fixed32(300, 1 << 31) + protobuf.double(2, 1.0) + protobuf.field(1, 0))
        self.assertEqual(protobuf.parse(message), {1: [(1 << 64) - 1, 0], 2: [7, 0x3FF0000000000000], 3: [b"ab"], 300: [1 << 31]})
        self.assertEqual([number for number, _ in protobuf.fields(message)], [1, 2, 3, 300, 2, 1])
        self.assertEqual(list(protobuf.fields(protobuf.fixed32(1, 258))), [(1, b"\x02\x01\x00\x00")])

    def test_damage_is_an_error(self):
        for damaged in [b"\x08", b"\x08\x96", b"\x12\x07test", b"\x09\x00", b"\x0b"]:
            with self.subTest(damaged=damaged):
                with self.assertRaises((ValueError, IndexError)):
                    protobuf.parse(damaged)


if __name__ == "__main__":
    unittest.main()
