"""Dataset folders and mixtures as `atoll-data` makes them (docs/reference/token_files.md), read with NumPy.

The files are read where they are needed, so a dataset may be larger than memory.
"""
from __future__ import annotations

import bisect
import pathlib
from typing import Any, Dict, List, NamedTuple, Optional

from .errors import FailedPrecondition, InvalidArgument
from .token_check import BackgroundCheck, verify
from .token_file import TokenFile
from .token_meta import Description, MixturePart, TokenFileEntry, read_description


class TokenText:
    """Token files that follow each other."""

    def __init__(self, folder: pathlib.Path, entries: List[TokenFileEntry], vocabulary: int):
        self.files = [TokenFile(folder / entry.name, entry, vocabulary) for entry in entries]
        self.file_tokens = [entry.tokens for entry in entries]
        self._starts = [sum(self.file_tokens[:i]) for i in range(len(entries))]

    @property
    def tokens(self) -> int:
        return sum(self.file_tokens)

    def read(self, first: int, count: int) -> Any:
        """Tokens [first, first + count) of the whole text, int64. Errors: as of TokenFile.read."""
        import numpy
        pieces, file = [], bisect.bisect_right(self._starts, first) - 1
        while count > 0:
            offset = first - self._starts[file]
            piece = self.files[file].read(offset, min(count, self.file_tokens[file] - offset))
            pieces.append(piece)
            first, count, file = first + len(piece), count - len(piece), file + 1
        return numpy.concatenate(pieces)


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
        self._background: Optional[BackgroundCheck] = None
        found = read_description(self.path)
        self.fingerprint, self.tokenizer, self.vocabulary = found.fingerprint, found.tokenizer, found.vocabulary
        self.end_of_text: Optional[int] = found.end_of_text
        self.parts = [self._open_part(part) for part in found.mixture] or [_part(str(self.path), 1, self.path, found)]

    @property
    def is_mixture(self) -> bool:
        return len(self.parts) > 1

    def check(self) -> None:
        """DataLoss if a file differs from its digest, as far as they are compared. The first call in a process starts comparing on a thread."""
        if self._background is None or not self._background.in_this_process:
            self._background = BackgroundCheck(self._files())
        self._background.check()

    def verify(self) -> None:
        """Compares all digests now. DataLoss names the first file that differs."""
        verify(self._files())

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_background": None}  # a copy in another process has its own

    def _files(self) -> List[TokenFile]:
        return [file for part in self.parts for text in (part.train, part.validation) for file in text.files]

    def _open_part(self, part: MixturePart) -> Part:
        path = self.path / part.folder
        found = read_description(path)
        if found.mixture:
            raise InvalidArgument(f"mixture {self.path}: its dataset {path} is a mixture itself; make it again with 'atoll-data mix'")
        if found.fingerprint != part.fingerprint:
            raise FailedPrecondition(f"mixture {self.path}: the dataset {path} was changed; put the old dataset back, or make the mixture "
                                     "again with 'atoll-data mix'")
        return _part(part.folder, part.weight, path, found)


def _part(name: str, weight: int, folder: pathlib.Path, found: Description) -> Part:
    held_out = [] if found.validation is None else [found.validation]
    return Part(name, weight, TokenText(folder, found.train, found.vocabulary), TokenText(folder, held_out, found.vocabulary))
