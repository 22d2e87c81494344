#!/usr/bin/env python3
"""Reads TensorBoard event files with nothing but the formats' descriptions (TFRecord, protobuf's wire format) and
prints each event as a line of JSON. Any damage is an exception.

Usage: tensorboard_reader.py FILE..."""
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from crc32c import crc32c  # noqa: E402
from protobuf import fields  # noqa: E402


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        length, length_crc = struct.unpack_from("<QI", data, at)
        assert masked(data[at:at + 8]) == length_crc, f"length at byte {at}"
        body = data[at + 12:at + 12 + length]
        assert len(body) == length, f"short record at byte {at}"
        assert masked(body) == struct.unpack_from("<I", data, at + 12 + length)[0], f"data at byte {at}"
        yield body
        at += 16 + length


def event(body):
    """tensorflow.Event: wall_time = 1, step = 2, file_version = 3, summary = 5; Summary: value = 1;
    Summary.Value: tag = 1, simple_value = 2."""
    out = {"step": 0}
    for number, value in fields(body):
        if number == 1:
            out["wall_time"] = struct.unpack("<d", value)[0]
        elif number == 2:
            out["step"] = value
        elif number == 3:
            out["file_version"] = value.decode()
        elif number == 5:
            for _, summary_value in fields(value):
                parts = dict(fields(summary_value))
                out["tag"] = parts[1].decode()
                out["value"] = struct.unpack("<f", parts[2])[0]
    return out


for path in sys.argv[1:]:
    with open(path, "rb") as file:
        for record in records(file.read()):
            print(json.dumps(event(record)))
