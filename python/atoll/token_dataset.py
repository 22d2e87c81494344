"""Samples of token files in the order of a run: exactly those of Atoll's own worker, with NumPy only.

docs/reference/data_order.md specifies the order.
"""
from __future__ import annotations

import bisect
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from .data_order import MixtureOrder, SampleOrder, part_seed
from .errors import FailedPrecondition, InvalidArgument
from .token_files import DatasetFolder, TokenText

IGNORED_TARGET = -100  # what torch.nn.functional.cross_entropy leaves out
_SEQUENCES = ("within_files", "across_files")


class SamplePlace(NamedTuple):
    """One sample: the part of the mixture (0 without one), its number there, and its first token in the part's training text."""

    part: int
    sample: int
    first_token: int


class _Samples:
    """The samples of one text."""

    def __init__(self, text: TokenText, context: int, sequences: str):
        self.text, self._context = text, context
        counted = text.file_tokens if sequences == "within_files" else [text.tokens]
        self._numbers: List[int] = []
        self._tokens: List[int] = []
        self.count = first = 0
        for tokens in counted:
            samples = max(0, tokens - 1) // context
            if samples:
                self._numbers.append(self.count)
                self._tokens.append(first)
            self.count, first = self.count + samples, first + tokens

    def first_token(self, sample: int) -> int:
        at = bisect.bisect_right(self._numbers, sample) - 1
        return self._tokens[at] + (sample - self._numbers[at]) * self._context


class TokenDataset:
    """The training samples of a dataset folder or a mixture, in the order of a run.

        files = atoll.TokenDataset("data/mix")
        with atoll.join(..., data_fingerprint=files.fingerprint) as run:
            for batch in run.steps(files.for_run(run).batches(8)):
                logits = model(torch.from_numpy(batch["input_ids"]))

    `context`, `seed` and `sequences` are the run's model context, run.seed and data.sequences; for_run() fills them in. With
    `isolate_documents`, batches say which document each token is of; None: as for_run()'s run says, and no without a run. Not
    thread-safe; copies may be used in other processes.
    """

    def __init__(self, folder: Any, context: int = 0, seed: int = 1337, sequences: str = "within_files",
                 isolate_documents: Optional[bool] = None):
        self._open(DatasetFolder(folder), context, seed, sequences, bool(isolate_documents))
        self._isolate = isolate_documents

    def _open(self, files: DatasetFolder, context: int, seed: int, sequences: str, isolate_documents: bool) -> None:
        if sequences not in _SEQUENCES:
            raise InvalidArgument(f"sequences: {sequences!r}; expected one of {', '.join(_SEQUENCES)}")
        if context < 0 or not 0 <= seed < 1 << 64:
            raise InvalidArgument(f"context {context}, seed {seed}: expected numbers from 0 on, and a seed below 2^64")
        if isolate_documents and files.end_of_text is None:
            raise InvalidArgument(f"isolate_documents: the description of {files.path} does not say which token ends a document (end_of_text in "
                                  "meta.json); a tokenizer that has one writes it, and 'atoll-data adopt --end-of-text N'")
        self.files, self.context, self.seed, self.sequences, self.isolate_documents = files, context, seed, sequences, isolate_documents
        self._parts = [_Samples(part.train, context, sequences) for part in files.parts] if context else []
        for part, samples in zip(files.parts, self._parts):
            if not samples.count:
                raise InvalidArgument(f"training text in {part.folder}: no file has the {context + 1} tokens of a sample (sequences: "
                                      f"{sequences}); write longer files with 'atoll-data merge', or use across_files in a new run")
        self._mixture = MixtureOrder([part.weight for part in files.parts], seed) if files.is_mixture else None
        self._orders = [SampleOrder(part.count, part_seed(seed, number) if files.is_mixture else seed)
                        for number, part in enumerate(self._parts)]

    # ---- what it is

    @property
    def fingerprint(self) -> str:
        """What a Join compares: the argument data_fingerprint of atoll.join."""
        return self.files.fingerprint

    @property
    def samples(self) -> List[int]:
        """The number of samples of each part."""
        self._need_context()
        return [part.count for part in self._parts]

    def for_run(self, run: Any, isolate_documents: Optional[bool] = None) -> "TokenDataset":
        """The same files in the order of this run. `isolate_documents`: None is what the constructor was told, and else data.isolate_documents.
        """
        configuration = run.config.get("config", {})
        data = configuration.get("data", {})
        chosen = self._isolate if isolate_documents is None else isolate_documents
        for section, model in configuration.get("model", {}).items():  # one, with the name of the family
            if self.files.vocabulary > int(model.get("vocabulary", self.files.vocabulary)):
                raise InvalidArgument(f"dataset folder {self.files.path}: its tokenizer's vocabulary is {self.files.vocabulary}, but "
                                      f"model.{section}.vocabulary is {model['vocabulary']}; begin a run with at least that, or use other files")
        wanted = str(data.get("tokenizer", ""))
        if "external" not in configuration.get("model", {}) and wanted not in ("", "none", self.files.tokenizer):
            raise InvalidArgument(f"dataset folder {self.files.path}: its tokens are those of {self.files.tokenizer}, and data.tokenizer of the run is "
                                  f"{wanted}; use files of that tokenizer")
        made = TokenDataset.__new__(TokenDataset)
        # A coordinator of an older release does not name the sequences, and reads the files as one text.
        made._open(self.files, run.context, int(configuration["run"]["seed"]),
                   "within_files" if str(data.get("sequences", "")).lower().endswith("within_files") else "across_files",
                   bool(data.get("isolate_documents", False) if chosen is None else chosen))
        made._isolate = chosen
        return made

    def verify(self) -> None:
        """Compares the digests of all files now. DataLoss names the first file that differs.

        Without it they are compared on a thread that starts with the first batch; the next batch then raises what the thread has found.
        """
        self.files.verify()

    # ---- its samples

    def place(self, position: int, partition: int = 0, partitions: int = 1) -> SamplePlace:
        """What stands at this position of a partition."""
        self._need_context()
        if not 0 <= partition < partitions or position < 0:
            raise InvalidArgument(f"position {position} of partition {partition} of {partitions} does not exist")
        of_run = position * partitions + partition
        part, own = (0, of_run) if self._mixture is None else self._mixture.at(of_run)
        sample = self._orders[part].at(own)
        return SamplePlace(part, sample, self._parts[part].first_token(sample))

    def sample(self, position: int, partition: int = 0, partitions: int = 1) -> Any:
        """Its context + 1 tokens, int64. DataLoss names a file that is damaged, or was changed since it was opened."""
        self.files.check()
        place = self.place(position, partition, partitions)
        return self._parts[place.part].text.read(place.first_token, self.context + 1)

    def batch(self, position: int, size: int, partition: int = 0, partitions: int = 1) -> Dict[str, Any]:
        """Samples position .. position + size - 1 of a partition, int64 [size, context] each.

        `input_ids`, and `targets`, which are the inputs shifted by one. With isolate_documents also `document_ids`, counted from 0 in
        each row, and `position_ids`, from 0 in each document; the target of a document's last token is IGNORED_TARGET.
        """
        import numpy
        rows = numpy.stack([self.sample(position + i, partition, partitions) for i in range(size)])
        batch = {"input_ids": rows[:, :-1].copy(), "targets": rows[:, 1:].copy()}
        if self.isolate_documents:
            self._add_documents(batch)
        return batch

    def batches(self, size: int) -> Callable[[int, int, int], Iterator[Dict[str, Any]]]:
        """For run.steps: a function (partition, partitions, start_sample) that returns batches from there on, without an end."""
        if size < 1:
            raise InvalidArgument(f"a batch of {size} samples; expected at least 1")

        def read(partition: int, partitions: int, start_sample: int) -> Iterator[Dict[str, Any]]:
            position = start_sample
            while True:
                yield self.batch(position, size, partition, partitions)
                position += size

        return read

    def _add_documents(self, batch: Dict[str, Any]) -> None:
        import numpy
        ends = batch["input_ids"] == self.files.end_of_text
        begins = numpy.zeros_like(ends)
        begins[:, 1:] = ends[:, :-1]
        places = numpy.broadcast_to(numpy.arange(self.context), begins.shape)
        batch["document_ids"] = numpy.cumsum(begins, axis=1, dtype=numpy.int64)
        batch["position_ids"] = (places - numpy.maximum.accumulate(numpy.where(begins, places, 0), axis=1)).astype(numpy.int64)
        batch["targets"][ends] = IGNORED_TARGET

    def _need_context(self) -> None:
        if not self.context:
            raise FailedPrecondition("the context of the samples is not known: give TokenDataset(folder, context=...), or use for_run(run)")
