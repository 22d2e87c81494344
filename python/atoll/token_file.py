"""One token file, or a part of one: its layout (docs/reference/token_files.md), reads and digest."""
from __future__ import annotations

import hashlib
import os
import pathlib
import stat
import weakref
from typing import Any, Callable, Optional, Tuple

from .errors import DataLoss, FailedPrecondition, InvalidArgument, NotFound
from .token_meta import TokenFileEntry

_LLMC = {20240520: (1, "<u2"), 20240801: (7, "<u4")}  # magic: version, type
_LLMC_HEADER = 1024
_MEGATRON_MAGIC = b"MMIDIDX\0\0"
_MEGATRON_TYPES = {4: "<u4", 8: "<u2"}
_DIGEST_BYTES = 1 << 21
_AGAIN = "copy the file again, then start this program again"


class TokenFile:
    """The tokens of one entry of a meta.json. Any thread may read it. A copy in another process opens the file again.

    The file is read, not mapped: a mapped file that is truncated ends the process with SIGBUS.
    """

    def __init__(self, path: pathlib.Path, entry: TokenFileEntry, vocabulary: int):
        """NotFound and InvalidArgument name a file that is missing, or other than the entry says."""
        self.path, self.entry, self._vocabulary = path, entry, vocabulary
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            raise NotFound(f"token file {path} is missing; copy the dataset again") from None
        except OSError as problem:
            raise FailedPrecondition(f"cannot open token file {path}: {problem.strerror}; make it readable for this user, or raise the limit of "
                                     "open files if there are too many") from None
        weakref.finalize(self, os.close, self._descriptor).atexit = False
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidArgument(f"token file {path} is no regular file; copy the dataset again")
        kind, begin = _layout(path, self._at(0, 12), status.st_size)
        self._kind, self._each = kind, int(kind[2:])
        bytes_there = status.st_size - begin
        if bytes_there != entry.file_tokens * self._each:
            raise InvalidArgument(f"token file {path}: {max(0, bytes_there) / self._each:g} tokens, but meta.json says {entry.file_tokens}; copy the "
                                  "file again")
        self._begin = begin + entry.first * self._each

    def __reduce__(self) -> Any:
        return TokenFile, (self.path, self.entry, self._vocabulary)

    def read(self, first: int, count: int) -> Any:
        """Tokens [first, first + count), int64. DataLoss names the file if it was truncated, or has a token outside the vocabulary."""
        import numpy
        tokens = numpy.frombuffer(self._bytes(first, count), dtype=self._kind).astype(numpy.int64)
        if count and int(tokens.max()) >= self._vocabulary:
            place = int((tokens >= self._vocabulary).argmax())
            raise DataLoss(f"token file {self.path}: token {tokens[place]} at position {self.entry.first + first + place} is outside the vocabulary "
                           f"of {self._vocabulary}: the file is damaged, or was written to; {_AGAIN}")
        return tokens

    def verify(self, go_on: Callable[[], bool]) -> None:
        """Compares the digest. Returns early if `go_on`, which is asked before each piece, says no. DataLoss names a file that differs."""
        digest, piece = hashlib.sha256(), _DIGEST_BYTES // self._each
        for first in range(0, self.entry.tokens, piece):
            if not go_on():
                return
            digest.update(self._bytes(first, min(piece, self.entry.tokens - first)))
        if digest.hexdigest() != self.entry.sha256:
            raise DataLoss(f"token file {self.path}: the SHA-256 of its tokens is not the one in meta.json: the file is damaged, or was written to; "
                           f"{_AGAIN}")

    def modified_ns(self) -> int:
        """When the file was written to, in nanoseconds since 1970."""
        return os.fstat(self._descriptor).st_mtime_ns

    def _bytes(self, first: int, count: int) -> bytes:
        begin, size = self._begin + first * self._each, count * self._each
        found = self._at(begin, size)
        if len(found) < size:
            raise DataLoss(f"token file {self.path}: byte {begin + len(found)} is missing, and was there when the file was opened: it was truncated "
                           f"while in use; {_AGAIN}")
        return found

    def _at(self, begin: int, size: int) -> bytes:
        """Fewer bytes only at the end of the file."""
        pieces, done = [], 0
        while done < size:
            try:
                piece = os.pread(self._descriptor, size - done, begin + done)
            except OSError as problem:
                raise DataLoss(f"cannot read token file {self.path}: {problem.strerror}; check the disk, or {_AGAIN}") from None
            if not piece:
                break
            pieces.append(piece)
            done += len(piece)
        return b"".join(pieces)


def _layout(path: pathlib.Path, head: bytes, size: int) -> Tuple[str, int]:
    """Type of the tokens, and the byte where they begin. `head`: the first bytes of the file; `size`: its bytes."""
    try:
        found = _layout_beside(path, size)
    except OSError as problem:
        raise FailedPrecondition(f"cannot read the index of token file {path}: {problem.strerror}; make it readable for this user") from None
    if found is not None:
        return found
    magic, version = int.from_bytes(head[:4], "little"), int.from_bytes(head[4:8], "little")
    known = _LLMC.get(magic)
    return _known(path, known[1] if known is not None and known[0] == version else None), _LLMC_HEADER


def _layout_beside(path: pathlib.Path, size: int) -> Optional[Tuple[str, int]]:
    """What an index or a description beside the file says."""
    index, metadata, ends = path.with_suffix(".idx"), pathlib.Path(f"{path}.metadata"), pathlib.Path(f"{path}.index")
    if path.suffix == ".bin" and index.exists():
        with open(index, "rb") as file:
            head = file.read(18)
        if head.startswith(_MEGATRON_MAGIC):
            return _known(path, _MEGATRON_TYPES.get(head[17]) if len(head) == 18 else None), 0
    if metadata.exists():
        line = metadata.read_bytes().partition(b"\n")[0]
        return _known(path, {b"2": "<u2", b"4": "<u4"}.get(line.rpartition(b"|")[2].strip())), 0
    if ends.exists():
        last = int.from_bytes(ends.read_bytes()[-8:], "little")
        return _known(path, {2: "<u2", 4: "<u4"}.get(size // max(1, last))), 0
    return None


def _known(path: pathlib.Path, kind: Optional[str]) -> str:
    if kind is None:
        raise InvalidArgument(f"{path} is no token file of llm.c, Megatron or datatrove with tokens of 2 or 4 bytes; "
                              "'atoll-data inspect' says what is wrong")
    return kind
