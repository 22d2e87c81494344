"""Dataset folders and mixtures as `atoll-data` makes them (docs/reference/token_files.md), read with NumPy.

The files are mapped, not read, so a dataset may be larger than memory.
"""
from __future__ import annotations

import bisect
import json
import pathlib
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .errors import FailedPrecondition, InvalidArgument, NotFound

_LLMC = {20240520: (1, "<u2"), 20240801: (7, "<u4")}  # magic: version, type
_LLMC_HEADER = 1024
_MEGATRON_MAGIC = b"MMIDIDX\0\0"
_MEGATRON_TYPES = {4: "<u4", 8: "<u2"}


class TokenText:
    """Token files that follow each other. Not thread-safe."""

    def __init__(self, folder: pathlib.Path, entries: List[Dict[str, Any]]):
        self.file_tokens = [int(entry["tokens"]) for entry in entries]
        self._files = [_open_entry(folder, entry) for entry in entries]
        self._starts = [sum(self.file_tokens[:i]) for i in range(len(entries))]

    @property
    def tokens(self) -> int:
        return sum(self.file_tokens)

    def read(self, first: int, count: int) -> Any:
        """Tokens [first, first + count) of the whole text, int64."""
        import numpy
        pieces, file = [], bisect.bisect_right(self._starts, first) - 1
        while count > 0:
            offset = first - self._starts[file]
            piece = self._files[file][offset:offset + count]
            pieces.append(piece)
            first, count, file = first + len(piece), count - len(piece), file + 1
        return numpy.concatenate(pieces).astype(numpy.int64)


class Part(NamedTuple):
    """A dataset and its weight. `folder`: as the mixture names it."""

    folder: str
    weight: int
    train: TokenText
    validation: TokenText


class DatasetFolder:
    """A dataset folder, or the datasets of a mixture.

    NotFound, InvalidArgument and FailedPrecondition name what is missing, damaged, or another dataset than the mixture was made of.
    """

    def __init__(self, folder: Any):
        self.path = pathlib.Path(folder)
        meta = _read_meta(self.path)
        self.fingerprint, self.tokenizer, self.vocabulary = str(meta["fingerprint"]), str(meta["tokenizer"]), int(meta["vocabulary"])
        end = meta.get("end_of_text")
        self.end_of_text: Optional[int] = None if end is None else int(end)
        if "mixture" in meta:
            self.parts = [self._open_part(entry) for entry in meta["mixture"]]
        else:
            self.parts = [Part(str(self.path), 1, TokenText(self.path, meta["train"]), TokenText(self.path, [meta["validation"]]))]

    @property
    def is_mixture(self) -> bool:
        return len(self.parts) > 1

    def _open_part(self, entry: Dict[str, Any]) -> Part:
        path = self.path / entry["folder"]
        meta = _read_meta(path)
        if "mixture" in meta:
            raise InvalidArgument(f"mixture {self.path}: its dataset {path} is a mixture itself; make it again with 'atoll-data mix'")
        if meta["fingerprint"] != entry["fingerprint"]:
            raise FailedPrecondition(f"mixture {self.path}: the dataset {path} was changed; put the old dataset back, or make the mixture "
                                     "again with 'atoll-data mix'")
        return Part(entry["folder"], int(entry["weight"]), TokenText(path, meta["train"]), TokenText(path, [meta["validation"]]))


def _read_meta(folder: pathlib.Path) -> Dict[str, Any]:
    path = folder / "meta.json"
    try:
        meta = json.loads(path.read_text())
    except FileNotFoundError:
        raise NotFound(f"{path} is missing: {folder} is no dataset folder; make one with 'atoll-data tokenize' or 'atoll-data adopt'") from None
    except ValueError as problem:
        raise InvalidArgument(f"{path}: {problem}; copy the dataset again") from None
    missing = {"tokenizer", "vocabulary", "fingerprint"} - meta.keys()
    if missing or not ("mixture" in meta or {"train", "validation"} <= meta.keys()):
        raise InvalidArgument(f"{path} does not describe a dataset; copy the dataset again")
    return dict(meta)


def _open_entry(folder: pathlib.Path, entry: Dict[str, Any]) -> Any:
    path, tokens = folder / entry["name"], int(entry["tokens"])
    values, first = _map_tokens(path), int(entry.get("first", 0))
    expected = int(entry.get("file_tokens", 0)) or tokens
    if len(values) != expected or first + tokens > expected:
        raise InvalidArgument(f"token file {path}: {len(values)} tokens, but meta.json says {expected}; copy the file again")
    return values[first:first + tokens]


def _map_tokens(path: pathlib.Path) -> Any:
    import numpy
    if not path.exists():
        raise NotFound(f"token file {path} is missing; copy the dataset again")
    kind, offset = _layout(path)
    if (path.stat().st_size - offset) % numpy.dtype(kind).itemsize:
        raise InvalidArgument(f"token file {path} is truncated; copy it again")
    return numpy.memmap(path, dtype=kind, mode="r", offset=offset)


def _layout(path: pathlib.Path) -> Tuple[str, int]:
    """Type of the tokens, and the byte where they begin."""
    index = path.with_suffix(".idx")
    if path.suffix == ".bin" and index.exists():
        with open(index, "rb") as file:
            head = file.read(18)
        if head.startswith(_MEGATRON_MAGIC):
            return _known(path, _MEGATRON_TYPES.get(head[17])), 0
    metadata, ends = pathlib.Path(f"{path}.metadata"), pathlib.Path(f"{path}.index")
    if metadata.exists():
        size = metadata.read_text().partition("\n")[0].rpartition("|")[2].strip()
        return _known(path, {"2": "<u2", "4": "<u4"}.get(size)), 0
    if ends.exists():
        import numpy
        last = int(numpy.fromfile(ends, dtype="<u8")[-1])
        return _known(path, {2: "<u2", 4: "<u4"}.get(path.stat().st_size // max(1, last))), 0
    with open(path, "rb") as file:
        head = file.read(12)
    magic, version = int.from_bytes(head[:4], "little"), int.from_bytes(head[4:8], "little")
    known = _LLMC.get(magic)
    return _known(path, known[1] if known is not None and known[0] == version else None), _LLMC_HEADER


def _known(path: pathlib.Path, kind: Optional[str]) -> str:
    if kind is None:
        raise InvalidArgument(f"{path} is no token file of llm.c, Megatron or datatrove with tokens of 2 or 4 bytes; "
                              "'atoll-data inspect' says what is wrong")
    return kind
