"""meta.json of dataset folders and mixtures (docs/reference/token_files.md), with the checks of Atoll's own worker."""
from __future__ import annotations

import hashlib
import json
import pathlib
from typing import Any, Dict, List, NamedTuple, Optional

from .errors import FailedPrecondition, InvalidArgument, NotFound

MAX_MIXTURE_WEIGHTS = 2 ** 16
_LARGEST = {"uint32": 2 ** 32 - 1, "uint64": 2 ** 64 - 1}
_KINDS: Dict[type, str] = {str: "a text", list: "a list", dict: "an object"}
_AGAIN = "copy the dataset again"


class TokenFileEntry(NamedTuple):
    """A token file, or the tokens [first, first + tokens) of its `file_tokens`. `sha256`: of these tokens, in hexadecimal digits."""

    name: str
    tokens: int
    sha256: str
    first: int
    file_tokens: int


class MixturePart(NamedTuple):
    """A dataset of a mixture. `folder`: from the mixture's own folder on."""

    folder: str
    weight: int
    fingerprint: str


class Description(NamedTuple):
    """A dataset has `train` and `validation`, and a mixture has `mixture`."""

    tokenizer: str
    vocabulary: int
    end_of_text: Optional[int]
    fingerprint: str
    train: List[TokenFileEntry]
    validation: Optional[TokenFileEntry]
    mixture: List[MixturePart]


def read_description(folder: pathlib.Path) -> Description:
    """NotFound for a folder without meta.json, and InvalidArgument that names file and field if it is damaged."""
    path = folder / "meta.json"
    try:
        meta = json.loads(path.read_bytes().decode())
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"{path} is missing: {folder} is no dataset folder; make one with 'atoll-data tokenize' or 'atoll-data adopt'") from None
    except OSError as problem:
        raise FailedPrecondition(f"cannot read {path}: {problem.strerror}; give the folder of a dataset, readable for this user") from None
    except (ValueError, RecursionError) as problem:
        raise InvalidArgument(f"{path}: {problem}; {_AGAIN}") from None
    fields = _Fields(path, "", meta)
    mixture = [_part_of(part) for part in fields.objects("mixture")] if fields.has("mixture") else []
    train = [] if fields.has("mixture") else [_entry_of(entry) for entry in fields.objects("train")]
    found = Description(fields.text("tokenizer"), fields.number("vocabulary", "uint32"),
                        fields.number("end_of_text", "uint32") if fields.has("end_of_text") else None, fields.text("fingerprint"), train,
                        None if fields.has("mixture") else _entry_of(fields.object("validation")), mixture)
    _check(path, found, fields)
    return found


def _check(path: pathlib.Path, found: Description, fields: "_Fields") -> None:
    if found.validation is None:
        if len(found.mixture) < 2:
            raise fields.wrong("mixture", f"it lists {len(found.mixture)} datasets, and a mixture has at least two")
        weights = sum(part.weight for part in found.mixture)
        if weights > MAX_MIXTURE_WEIGHTS or not all(part.weight for part in found.mixture):
            raise fields.wrong("mixture", f"its weights must be above 0, with a sum of at most {MAX_MIXTURE_WEIGHTS}")
        lines = [f"mixture {found.tokenizer} {found.vocabulary}", *(f"{part.weight} {part.fingerprint}" for part in found.mixture)]
    else:
        if not found.train:
            raise fields.wrong("train", "it lists no file")
        lines = [f"{found.tokenizer} {found.vocabulary}",
                 *(f"{entry.name} {entry.tokens} {entry.sha256}" for entry in [*found.train, found.validation])]
    text = "".join(f"{line}\n" for line in lines)
    if hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest() != found.fingerprint:
        raise InvalidArgument(f"{path}: the field 'fingerprint' is not that of the other fields: one of them was changed; {_AGAIN}")


def _part_of(fields: "_Fields") -> MixturePart:
    return MixturePart(fields.path("folder"), fields.number("weight", "uint32"), fields.text("fingerprint"))


def _entry_of(fields: "_Fields") -> TokenFileEntry:
    tokens, first = fields.number("tokens"), fields.number("first") if fields.has("first") else 0
    whole = (fields.number("file_tokens") if fields.has("file_tokens") else 0) or tokens
    if first + tokens > whole:
        raise fields.wrong("tokens", f"it lists tokens {first} to {first + tokens} of {whole}")
    return TokenFileEntry(fields.path("name"), tokens, fields.text("sha256"), first, whole)


class _Fields:
    """An object of a meta.json. `place`: where it stands there, for messages."""

    def __init__(self, path: pathlib.Path, place: str, values: Any):
        if not isinstance(values, dict):
            raise InvalidArgument(f"{path}: {f'the field {place!r}' if place else 'the contents'} must be an object; {_AGAIN}")
        self._path, self._place = path, place
        self._values: Dict[str, Any] = values

    def has(self, name: str) -> bool:
        return name in self._values

    def wrong(self, name: str, problem: str) -> InvalidArgument:
        return InvalidArgument(f"{self._path}: the field {self._name(name)!r}: {problem}; {_AGAIN}")

    def text(self, name: str) -> str:
        found: str = self._of(str, name)
        return found

    def path(self, name: str) -> str:
        found = self.text(name)
        if not found or "\0" in found:
            raise self.wrong(name, f"{found!r} is no name of a file")
        return found

    def number(self, name: str, kind: str = "uint64") -> int:
        value = self._values.get(name)
        if type(value) is not int or not 0 <= value <= _LARGEST[kind]:
            raise self.wrong(name, f"{self._shown(name)}; expected a whole number from 0 to {_LARGEST[kind]}")
        return value

    def object(self, name: str) -> "_Fields":
        return _Fields(self._path, self._name(name), self._of(dict, name))

    def objects(self, name: str) -> List["_Fields"]:
        return [_Fields(self._path, f"{self._name(name)}[{i}]", value) for i, value in enumerate(self._of(list, name))]

    def _of(self, kind: type, name: str) -> Any:
        value = self._values.get(name)
        if not isinstance(value, kind):
            raise self.wrong(name, f"{self._shown(name)}; expected {_KINDS[kind]}")
        return value

    def _shown(self, name: str) -> str:
        return f"it is {str(json.dumps(self._values[name]))[:60]}" if name in self._values else "it is missing"

    def _name(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name
