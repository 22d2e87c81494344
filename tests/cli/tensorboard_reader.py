#!/usr/bin/env python3
"""Reads TensorBoard event files with nothing but the formats' descriptions (TFRecord, protobuf's wire format) and
prints each event as a line of JSON. Any damage is an exception.

Usage: tensorboard_reader.py FILE..."""
import json
import struct
import sys


def crc32c(data):
    """Bit by bit, from the polynomial: x^32 + ... = 0x1EDC6F41, reflected 0x82F63B78."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


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


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """(number, value) of a message: int, 8 or 4 raw bytes, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind)
            if size is None:
                assert kind == 2, f"wire type {kind}"
                size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


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
