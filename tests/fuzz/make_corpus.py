#!/usr/bin/env python3
"""Writes tests/fuzz/corpus/TARGET/seed-*: what the decoders accept, in the layout that each target describes, from
tests/golden and from the formats' rules. Other files there (crash-*, found-*) are inputs that once found something."""

import gzip
import hashlib
import json
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from crc32c import crc32c  # noqa: E402
from protobuf import field, fixed32  # noqa: E402

GOLDEN = ROOT / "tests" / "golden"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"

CODECS = ["fp32", "fp16", "bf16", "int8", "int4", "e3m0", "int8_quantile", "topk64", "topk128", "topk64_bf16",
          "topk128_bf16"]
RECORDS = ["identity", "manifest", "config", "worker", "partition", "head", "stored", "round", "contribution",
           "evaluation", "event", "control", "confirmation"]
YAML = """run: {name: sample, workers: 4, rounds: 20}
model:
  gpt: {layers: 2, heads: 4, width: 64, context: 32, vocabulary: 256}
data: {tokenizer: bytes}
inner: {steps: 50, learning_rate: 1e-3, batch: 12}
"""


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed-{name}").write_bytes(data if isinstance(data, bytes) else data.encode())


def golden(folder, name):
    return bytes.fromhex("".join((GOLDEN / folder / f"{name}.hex").read_text().split()))


def zstd_raw(data):
    """One frame (RFC 8878): single segment, one raw block."""
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(data)]) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def zstd_repeated(byte, size):
    """A frame of one byte repeated: what a bomb is made of. Its size is said in eight bytes."""
    block = 128 << 10
    out = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", size)
    for begin in range(0, size, block):
        count = min(block, size - begin)
        last = begin + count == size
        out += struct.pack("<I", count << 3 | 2 | last)[:3] + bytes([byte])
    return out


def codecs():
    for index, name in enumerate(CODECS):
        elements = 5000 if name.startswith("topk") else 800
        payload = golden("core", name)
        write("codec", name, struct.pack("<BBH", index, 0, elements) + payload)
        write("codec", f"{name}-zero", struct.pack("<BBH", index, 1, 300))
        if name in ("int8", "int4", "bf16", "topk64"):
            write("delta", name, struct.pack("<BBH", index, 0, elements) + payload)


def chunks():
    data = b"123456789"
    plain = field(2, 1 << 20) + fixed32(4, crc32c(data)) + field(3, data)
    write("chunk_frame", "plain", b"\0" + plain)
    write("chunk_frame", "cut", struct.pack("<BHHH", 3, 2, 9, 14) + plain)
    packed = zstd_raw(data)
    fields = fixed32(4, crc32c(data)) + field(5, 1) + field(6, len(data))
    write("chunk_frame", "zstd", b"\0" + fields + field(3, packed))
    write("chunk_frame", "bomb", b"\0" + field(5, 1) + field(6, 1 << 20) + field(3, zstd_repeated(0, 1 << 30)[:1000]))
    write("chunk_frame", "header", b"\0" + golden("wire", "push_header"))
    write("chunk_frame", "data", b"\0" + golden("wire", "push_data"))
    write("zstd_block", "raw", struct.pack("<I", 9)[:3] + packed)
    write("zstd_block", "repeated", struct.pack("<I", 1 << 17)[:3] + zstd_repeated(7, 1 << 17))
    write("zstd_block", "bomb", struct.pack("<I", 64)[:3] + zstd_repeated(7, 1 << 30)[:1000])


def records():
    entries = b""
    for kind, name in enumerate(RECORDS, 1):
        record = golden("storage", name)
        write("record", name, bytes([kind]) + record[2:-4])
        key = {"identity": b"identity", "manifest": b"manifest", "control": b"control"}.get(name)
        if key:
            entries += struct.pack("<BH", len(key), len(record) - 4) + key + record[:-4]
    write("record", "whole", bytes([128 + 1]) + golden("storage", "identity"))
    write("run_loader", "identity", entries)
    key = b"config/" + struct.pack(">Q", 3)
    config = golden("storage", "config")
    write("run_loader", "config", entries + struct.pack("<BH", len(key), len(config) - 4) + key + config[:-4])


def tensors():
    def entry(dtype, shape, begin, end):
        return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}

    for dtype, size in (("F32", 4), ("F16", 2), ("BF16", 2)):
        header = json.dumps({"__metadata__": {"by": "atoll"}, "w": entry(dtype, [2, 3], 0, 6 * size),
                             "b": entry(dtype, [4], 6 * size, 10 * size)}).encode()
        for target in ("safetensors", "seed_file"):
            write(target, dtype.lower(), struct.pack("<BH", 1, 10 * size) + header)
    header = json.dumps({"w": entry("F32", [2], 0, 8)}).encode()
    write("safetensors", "whole", b"\0" + struct.pack("<Q", len(header)) + header + bytes(8))
    write("safetensors", "huge", b"\0" + struct.pack("<Q", 1 << 60) + header)
    write("safetensors", "overflow", struct.pack("<BH", 1, 8) +
          json.dumps({"w": entry("F32", [1 << 40, 1 << 40], 0, 8)}).encode())
    write("safetensors", "deep", b"\1\0\0" + b"[" * 3000)


def model_folders():
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_inner": None, "n_layer": 2,
              "n_positions": 4, "vocab_size": 16, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}
    write("hf_config", "gpt2", json.dumps(config))
    write("hf_config", "other", json.dumps({**config, "n_embd": "768", "hidden_size": 8, "n_inner": [1], "tie_word_embeddings": 0}))
    write("hf_config", "ids", json.dumps({"bos_token_id": 3, "eos_token_id": [15, 16]}))
    write("hf_config", "deep", '{"a":' * 3000)
    write("hf_config", "twice", '{"model_type": "gpt2", "model_type": "gpt2"}')
    files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    write("shard_index", "two", json.dumps({"metadata": {"total_size": 12}, "weight_map": {"a": files[1], "b": files[0], "c": files[1]}}))
    for number, name in enumerate(["../m.safetensors", "/m.safetensors", ".safetensors", "m.safetensors\0", "m"]):
        write("shard_index", f"outside-{number}", json.dumps({"weight_map": {"a": name}}))
    tokenizer = {"normalizer": {"type": "NFC"}, "decoder": {"type": "ByteLevel"},
                 "added_tokens": [{"id": 5, "content": "<s>", "special": True}, {"id": 6, "content": "<t>", "special": False}],
                 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
                 "model": {"type": "BPE", "vocab": {"a": 0, "aa": 1, "Ġ": 2, "aaaa": 3}, "merges": ["a a", ["aa", "aa"]]}}
    write("tokenizer_json", "gpt2", json.dumps(tokenizer))
    digits = [{"type": "Digits", "individual_digits": True}, tokenizer["pre_tokenizer"]]
    write("tokenizer_json", "smollm", json.dumps({**tokenizer, "pre_tokenizer": {"type": "Sequence", "pretokenizers": digits}}))
    write("tokenizer_json", "deep", "[" * 3000)
    write("tiktoken", "three", "YQ== 0\nYWE= 1\nYWFhYQ== 7\n")
    write("vocab_merges", "two", json.dumps(tokenizer["model"]["vocab"]) + "\0#version: 0.2\na a\naa aa\n")
    for number, start in enumerate((b"\x00", b"\x01", b"\x02", b"\x03", b"\x04", b"\x05", b"\x83")):
        write("tokenizer_text", f"pattern-{number}", start + b"\x06aabb  " + "It's 1234\n\n  A\u030a \u1100\u1161 <t><s> \u00aaAB".encode() + b"\xff\xe2\x82 ")
    write("shard_index", "twice", '{"weight_map": {"a": "m.safetensors", "a": "n.safetensors"}}')


def tokens():
    tokens_of = lambda values: b"".join(struct.pack("<H", value) for value in values)
    header = lambda count: struct.pack("<3i", 20240520, 1, count) + bytes(1012)
    write("token_file", "three", struct.pack("<H", 255) + header(3) + tokens_of([1, 2, 255]))
    write("token_file", "wide", struct.pack("<H", 65535) + struct.pack("<3i", 20240801, 7, 2) + bytes(1012) + struct.pack("<2I", 1, 65534))
    write("token_file", "cut", struct.pack("<H", 255) + header(1 << 30) + tokens_of([1]))
    write("token_file", "negative", struct.pack("<H", 255) + header(-1))
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ2i2q3q", 1, 8, 2, 3, 3, 2, 0, 6, 0, 1, 2)
    write("token_layout", "megatron", b"\0" + struct.pack("<I", 10) + index)
    write("token_layout", "megatron-gap", b"\0" + struct.pack("<I", 10) + index[:42] + b"\1" + index[43:])
    write("token_layout", "datatrove", b"\1\0" + struct.pack("<2I", 10, 20) + b"gpt2|2\n10\n10 T")
    write("token_layout", "datatrove-metadata", b"\1\1" + struct.pack("<2I", 0, 40) + b"a|b|4\n10\n")
    zstd = bytes.fromhex("28b52ffd2005290000") + b"hello"  # one raw block
    write("text_source", "zstd", bytes.fromhex("502a4d1801000000aa") + zstd + zstd)
    write("text_source", "zstd-cut", zstd[:-2])
    write("text_source", "plain", "To be, or not to be")
    write("text_source", "gzip", gzip.compress(b"that is the question " * 20, mtime=0))
    write("text_source", "bomb", gzip.compress(bytes(1 << 20), mtime=0))
    write("text_source", "cut", gzip.compress(b"whether 'tis nobler", mtime=0)[:-6])
    files = [("train_000.bin", 9, "ab"), ("val.bin", 3, "cd")]
    text = "bytes 256\n" + "".join(f"{name} {count} {digest}\n" for name, count, digest in files)
    entries = [{"file": name, "name": name, "tokens": count, "sha256": digest} for name, count, digest in files]
    write("dataset_description", "two", json.dumps({
        "tokenizer": "bytes", "vocabulary": 256, "train": entries[:1], "validation": entries[1],
        "fingerprint": hashlib.sha256(text.encode()).hexdigest()}))


def configs():
    write("yaml_config", "sample", YAML)
    write("yaml_config", "blocks", YAML + """round:
  quorum: 0.75      # of the members
  grace_s: 2
codec: {push: int8, pull_delta: true}
merge: {method: "trimmed_mean", trim: 0.25}
evaluation: {every: 5}
""")
    write("yaml_config", "preset", """run: {name: sample, workers: 4, rounds: 20}
model:
  preset: smollm2-135m
  llama: {context: 2048, rope_scaling: {factor: 8}}
data: {tokenizer: gpt2}
inner: {steps: 50, learning_rate: 1e-3, batch: 12}
""")
    write("yaml_config", "alias", "a: &a [*a]\n")
    write("yaml_config", "tag", "!!binary x: y\n--- z\n")
    write("yaml_config", "deep", "a: " + "[" * 500)
    write("config_settings", "two", "round.deadline_s=120\ncodec.push=int8")
    write("config_settings", "unknown", "round.deadlines=120")
    write("config_settings", "section", "round=1\n.=\n=\nround..x=2")
    write("config_bytes", "run", field(1, field(1, "sample") + field(2, 4)))


def messages():
    someone = field(1, "0123456789abcdef") + field(3, "w0") + field(4, 3)
    join = golden("wire", "join")
    write("client_message", "join", b"\0" + join)
    write("client_message", "heartbeat", b"\1" + field(1, someone) + field(2, field(1, 5)))
    write("client_message", "push", b"\2" + golden("wire", "push_header")[2:])
    write("client_message", "status", b"\3" + field(1, someone) + field(2, field(1, 1) + field(2, 7)))
    write("client_message", "pull", b"\4" + field(1, someone) + field(3, 6) + field(4, 60000))
    write("client_message", "control", b"\5" + field(1, 1) + field(2, "night"))
    write("client_message", "order", b"\6" + field(1, "w0") + field(2, 2))
    write("client_message", "settings", b"\7" + field(1, field(1, "round.deadline_s") + field(2, "50")))
    tensor = field(1, "w") + field(2, b"\3\4")
    write("client_message", "manifest", b"\x08" + field(1, tensor))
    write("server_message", "join", b"\0" + field(1, field(1, 1)) + field(2, "0123456789abcdef"))
    write("server_message", "orders", b"\1" + b"\x09" + struct.pack("<d", 15.0) + field(2, 2))
    write("server_message", "pull", b"\2" + golden("wire", "pull_header"))
    write("server_message", "fate", b"\3" + field(1, 2) + field(2, 1000))
    any_of = lambda kind, body: field(3, field(1, "type.googleapis.com/google.rpc." + kind) + field(2, body))
    write("wire_status", "refusal", b"\x09" + field(1, 9) + field(2, "too late") +
          any_of("ErrorInfo", field(1, "STALE_BASE") + field(2, "atoll") +
                 field(3, field(1, "head_version") + field(2, "12"))) +
          any_of("RetryInfo", field(1, field(1, 2) + field(2, 500000000))))
    write("wire_status", "inside", b"\x0ereason=STALE_BASE\nretry_after_ns=100\nmetadata.head_version=1\\x32\n")


def worker_files():
    text = lambda s: struct.pack("<I", len(s)) + s
    moments = struct.pack("<I", 2) + 2 * (struct.pack("<Q", 2) + struct.pack("<2f", 1, -2))
    replica = text(b"adamw of 2 values") + struct.pack("<QIIQ", 4, 2, 5, 12) + text(b"\0\1\2") + moments
    write("worker_state", "round", b"\0" + struct.pack("<QQQII", 7, 9, 900, 40, 3) + replica)
    payload = b"\1\2\3\4"
    offer = struct.pack("<IQIBIQIBIQd", 0, 9, 0, 4, crc32c(payload), 2400, 50, 1, 3, 600, 1.25)
    write("worker_state", "push", b"\1" + struct.pack("<Q", 7) + offer + struct.pack("<Q", 4) + payload +
          struct.pack("<Q2f", 2, 0.5, -0.5))
    write("worker_state", "whole", b"\2ATOLLWS1\1" + bytes(6))
    write("identity", "identity", b"\0" + json.dumps({"name": "w1", "secret": "0a" * 32}).encode())
    write("identity", "key", b"\1" + b"5b" * 32 + b"\n")


def objects():
    write("checkpoint_manifest", "one", b"\1" + json.dumps({
        "format": 1, "name": "night", "run_id": "0011", "run_name": "sample", "software_version": "0.1.0",
        "epoch": "0102030405060708", "versions": [3, 4], "committed_tokens": 900, "created_unix_ns": 17,
        "automatic": True, "files": [{"path": "meta/000012.sst", "bytes": 10, "crc32c": 99}]}).encode())
    write("checkpoint_manifest", "outside", b"\1" + json.dumps({"files": [{"path": "a/../../b"}]}).encode())
    write("checkpoint_manifest", "deep", b"\0" + b'{"a":' + b"[" * 3000)
    write("event_json", "round", json.dumps({
        "sequence": 5, "unix_ns": 1, "kind": 2, "message": "round closed", "worker": "w0", "fragment": 1, "version": 7,
        "round": {"fragment": 1, "version": 7, "train_loss": 1.5, "close_reason": "all"},
        "evaluation": {"version": 7, "loss": 1.25, "tokens": 100}}))
    pod = {"metadata": {"name": "atoll-worker-3", "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"},
           "status": {"phase": "Pending", "containerStatuses": [
               {"restartCount": 2, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no"}}}]}}
    write("kubernetes_json", "list", b"\0" + json.dumps({"items": [pod], "metadata": {"continue": "x"}}).encode())
    write("kubernetes_json", "pod", b"\1" + json.dumps(pod).encode())
    write("kubernetes_json", "scale", b"\2" + json.dumps({"spec": {"replicas": 3}}).encode())


def names():
    for number, address in enumerate(["127.0.0.1:7600", "[::1]:0", "coordinator.example:65536", "ipv6:%5B::1%5D:9"]):
        write("names", f"address-{number}", b"\0" + address.encode())
    write("names", "worker", b"\1Host_7.example")
    write("names", "file", b"\1" + b"0102030405060708-00000002-0000000000000029-00000001-worker-1.eu")
    write("names", "terminal", b"\2" + "w\x1b[2J\u202ename".encode())
    write("names", "signature", b"\3" + bytes(range(96)))


def main():
    for old in CORPUS.glob("*/seed-*"):
        old.unlink()
    for make in (codecs, chunks, records, tensors, model_folders, tokens, configs, messages, worker_files, objects, names):
        make()


if __name__ == "__main__":
    main()
