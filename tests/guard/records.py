"""Reads the records of a data directory and the push files of a worker without any of our own code.

docs/reference/storage_format.md ("Keys in meta", "Records") has the grammar of the records, client/sync/state_file.h that of a worker's
files. RocksDB's C library reads the database.
"""
import ctypes
import ctypes.util
import hashlib
import pathlib
import shutil
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from crc32c import crc32c  # noqa: E402  (it lies one folder up)

FORMAT = 1
HEAD, STORED, ROUND, CONTRIBUTION = 6, 7, 8, 9


class Fields:
    """The fields of one record or file, in order; integers are little-endian."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        value, = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def u8(self):
        return self.number("B")

    def u32(self):
        return self.number("I")

    def u64(self):
        return self.number("Q")

    def f64(self):
        return self.number("d")

    def bytes(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def text(self):
        return self.bytes(self.u32()).decode()

    def hash(self):
        low, high = self.u64(), self.u64()
        return f"{high:016x}{low:016x}"


def body_of(key, record, kind):
    """The fields of a record after format and kind. ValueError when it is damaged or of another kind."""
    if crc32c(record[:-4]) != struct.unpack("<I", record[-4:])[0] or record[0] != FORMAT or record[1] != kind:
        raise ValueError(f"the record of {key} is not sound, or not of kind {kind}")
    return Fields(record[2:-4])


def contribution(fields):
    known = {"epoch": f"{fields.u64():016x}", "fragment": fields.u32(), "base": fields.u64(), "worker": fields.text(),
             "sequence": fields.u32(), "incarnation": fields.u64(), "codec": fields.u8(), "payload_bytes": fields.u64(),
             "payload_crc32c": fields.u32(), "tokens": fields.u64(), "steps": fields.u32()}
    if fields.u8():
        known["partition"] = fields.u32()
    known.update(samples_consumed=fields.u64(), norm=fields.f64(), mean_loss=fields.f64())
    return known


def round_record(fields):
    known = {"epoch": f"{fields.u64():016x}", "fragment": fields.u32(), "version": fields.u64(), "outer_steps": fields.u64(),
             "config_version": fields.u64()}
    fields.bytes(1 + 5 * 8 + 4 + 8)          # optimizer, its five factors, delay, spread
    fields.bytes(1 + 1 + 8 + 8 + 4 + 1 + 1)  # weights, method, trim, clip radius and iterations, norm guard, sparse average
    known["contributions"] = [contribution(fields) for _ in range(fields.u32())]
    known["weights"] = [fields.number("f") for _ in range(fields.u32())]
    known.update(committed_tokens=fields.u64(), closed_unix_ns=fields.number("q"), close_reason=fields.text(),
                 parameters=fields.hash(), state=fields.hash(), published=fields.hash())
    return known


def head(fields):
    return {"fragment": fields.u32(), "epoch": f"{fields.u64():016x}", "version": fields.u64(), "config_version": fields.u64()}


def stored(fields):
    known = {"fragment": fields.u32(), "epoch": f"{fields.u64():016x}", "elements": fields.u64(), "state_vectors": fields.u32()}
    known["versions"] = [fields.u64() for _ in range(fields.u32())]
    return known


def library():
    """RocksDB's C interface, or None."""
    name = ctypes.util.find_library("rocksdb")
    if name is None:
        return None
    found = ctypes.CDLL(name)
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t)
    for function, result, arguments in (
            ("rocksdb_options_create", pointer, []),
            ("rocksdb_open_for_read_only", pointer, [pointer, text, ctypes.c_ubyte, ctypes.POINTER(text)]),
            ("rocksdb_readoptions_create", pointer, []),
            ("rocksdb_create_iterator", pointer, [pointer, pointer]),
            ("rocksdb_iter_seek_to_first", None, [pointer]),
            ("rocksdb_iter_valid", ctypes.c_ubyte, [pointer]),
            ("rocksdb_iter_next", None, [pointer]),
            ("rocksdb_iter_key", pointer, [pointer, size]),
            ("rocksdb_iter_value", pointer, [pointer, size]),
            ("rocksdb_iter_get_error", None, [pointer, ctypes.POINTER(text)]),
            ("rocksdb_iter_destroy", None, [pointer]),
            ("rocksdb_close", None, [pointer])):
        getattr(found, function).restype = result
        getattr(found, function).argtypes = arguments
    return found


def entries(folder):
    """Keys and values of a database that no program has open. RocksDB writes files beside it, so this reads a copy."""
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(folder, pathlib.Path(copy) / "db")
        return _entries_in_place(pathlib.Path(copy) / "db")


def _entries_in_place(folder):
    rocksdb, error, size = library(), ctypes.c_char_p(), ctypes.c_size_t()
    database = rocksdb.rocksdb_open_for_read_only(rocksdb.rocksdb_options_create(), str(folder).encode(), 0, ctypes.byref(error))
    if error.value:
        raise ValueError(f"{folder.name}: {error.value.decode()}")
    found = {}
    iterator = rocksdb.rocksdb_create_iterator(database, rocksdb.rocksdb_readoptions_create())
    rocksdb.rocksdb_iter_seek_to_first(iterator)
    while rocksdb.rocksdb_iter_valid(iterator):
        key = ctypes.string_at(rocksdb.rocksdb_iter_key(iterator, ctypes.byref(size)), size.value)
        found[key] = ctypes.string_at(rocksdb.rocksdb_iter_value(iterator, ctypes.byref(size)), size.value)
        rocksdb.rocksdb_iter_next(iterator)
    rocksdb.rocksdb_iter_get_error(iterator, ctypes.byref(error))
    rocksdb.rocksdb_iter_destroy(iterator)
    rocksdb.rocksdb_close(database)
    if error.value:
        raise ValueError(f"{folder.name}: {error.value.decode()}")
    return found


def of_data_directory(folder):
    """The records that matter here, as JSON. `sha256` holds digests of the records that no program may ever change."""
    kinds = {b"round": (ROUND, round_record), b"contribution": (CONTRIBUTION, contribution), b"head": (HEAD, head),
             b"stored": (STORED, stored)}
    known = {"round": [], "contribution": [], "head": [], "stored": [], "sha256": {}, "count": {}}
    for key, record in entries(pathlib.Path(folder) / "meta").items():
        family = key.partition(b"/")[0]
        name = family.decode()
        known["count"][name] = known["count"].get(name, 0) + 1
        if family in kinds:
            kind, read = kinds[family]
            known[name].append(read(body_of(key, record, kind)))
        if family in (b"round", b"config", b"event", b"evaluation", b"identity", b"manifest"):
            known["sha256"][key.hex()] = hashlib.sha256(record).hexdigest()
    return known


def pending_pushes(state_directory):
    """The contributions in a worker's state directory without a verdict."""
    pending = []
    for path in sorted(pathlib.Path(state_directory).glob("progress/push-*")):
        data = path.read_bytes()
        if data[:9] != b"ATOLLWS1\x02" or crc32c(data[:-6]) != struct.unpack("<I", data[-6:-2])[0]:
            raise ValueError(f"{path.name} is not a sound push file")
        mark = data[-2] if data[-2] ^ data[-1] == 0xFF else 0
        if mark != 0:
            continue  # the verdict is known
        fields = Fields(data[9:])
        fields.text(), fields.text(), fields.text()  # run, worker, model
        pending.append({"epoch": f"{fields.u64():016x}", "fragment": fields.u32(), "base": fields.u64(), "sequence": fields.u32(),
                        "codec": fields.u8(), "payload_crc32c": fields.u32(), "tokens": fields.u64(), "steps": fields.u32()})
    return pending
