#!/usr/bin/env python3
"""atoll-data tokenize, the real program: its result is the same bytes with any number of threads, from any compression, and after
kill -9 at several moments; bad input is rejected with file and line; decode, split and merge give the text back.

Usage: program_test.py ATOLL_DATA. Exit codes: 0 all of it, 1 not (the complaints are printed).
"""
import gzip
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FILES = 24
PLACES = (1, 7, 8, 20)  # of the files, before which a call is killed
QUIET_S = 0.3  # without a new record
PATIENCE_S = 100


class Failed(Exception):
    pass


def expect(truth, why):
    if not truth:
        raise Failed(why)


class Program:
    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def run(self, *arguments, code=0, stdin=None):
        done = subprocess.run([self.path, *map(str, arguments)], cwd=self.folder, capture_output=True, timeout=PATIENCE_S,
                              check=False, input=stdin)
        expect(done.returncode == code, f"{arguments}: exit code {done.returncode}, expected {code}: {done.stderr.decode()[-800:]}")
        return done.stdout, done.stderr.decode()

    def start(self, *arguments):
        return subprocess.Popen([self.path, *map(str, arguments)], cwd=self.folder, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)


def digests(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def documents_of(seed, count):
    draw = random.Random(seed)
    words = ["the", "Quick", "br\u00f6wn", "fox\n", "\U0001f600", "jumps.", "\u4e2d\u6587", "1234", "  "]
    return [" ".join(draw.choices(words, k=draw.randrange(1, 400))) for _ in range(count)]


def write_inputs(folder):
    folder.mkdir()
    for number in range(FILES):
        lines = "".join(json.dumps({"id": i, "text": text}, ensure_ascii=i % 2 == 0) + "\n"
                        for i, text in enumerate(documents_of(number, 300)))
        path = folder / f"{number:02}.jsonl"
        if number % 3 == 0:
            path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
        else:
            path.write_text(lines)


def threads_do_not_matter(program, work):
    expected = None
    for threads in (1, 2, 5):
        out = work / f"threads{threads}"
        program.run("tokenize", "--field", "text", "--shuffle-documents", 3, "--shard-tokens", 400_000, "--threads", threads, "--out",
                    out, work / "in")
        found = digests(out)
        expected = expected or found
        expect(found == expected, f"{threads} threads make other files than one")
    expect(len(expected) > 5, f"several shards are expected: {sorted(expected)}")


def recorded_inputs(partial):
    try:
        return json.loads((partial / "journal.json").read_text())["inputs"]
    except (OSError, ValueError):
        return 0


def kill_before(program, command, work, files, place, done):
    """Starts a call that stops before files[place], where a pipe stands that nobody writes, and kills it there, when
    it has recorded more than `done` inputs: how many, and what it said."""
    pipe = work / "pipe"
    os.mkfifo(pipe)
    process = program.start(*command, *files[:place], pipe, *files[place:])
    deadline, writer, seen, since = time.monotonic() + PATIENCE_S, None, -1, 0.0
    try:
        while writer is None or seen <= done or time.monotonic() - since < QUIET_S:
            expect(process.poll() is None, f"the call ended: {process.returncode}")
            expect(time.monotonic() < deadline, "the call does not come to the pipe")
            try:
                writer = writer or os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # not opened yet
                pass
            if recorded_inputs(work / "killed.partial") != seen:
                seen, since = recorded_inputs(work / "killed.partial"), time.monotonic()
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        said = process.communicate()[1].decode()
        expect(process.returncode == -signal.SIGKILL, f"the call ended: {process.returncode}")
    finally:
        process.kill()
        process.wait()
        if writer is not None:
            os.close(writer)
        pipe.unlink()
    return seen, said


def killed_calls_continue(program, work, *options):
    """The same bytes after kills at several places, and one while the shards are written."""
    out, partial = work / "killed", work / "killed.partial"
    command = ["tokenize", "--field", "text", "--threads", 2, *options]
    program.run(*command, "--out", work / "whole", work / "in")
    files, done = sorted((work / "in").iterdir()), 0
    for place in PLACES:
        seen, said = kill_before(program, [*command, "--out", out], work, files, place, done)
        expect(done < seen <= place, f"{seen} inputs are recorded before {place}, and {done} were")
        expect((f"{done} of {len(files) + 1} input(s) are done" in said) == (done > 0), said)
        expect(not out.exists(), "half of a result is there")
        done = seen
    process = program.start(*command, "--out", out, *files)
    while process.poll() is None and not list(partial.glob("train_*")):
        time.sleep(0.0005)
    process.kill()
    process.communicate()
    print(f"{options}: killed behind {done} inputs, and {'not at the end' if out.exists() else 'while it wrote shards'}")
    if not out.exists():
        _, said = program.run(*command, "--out", out, *files)
        expect("input(s) are done" in said, f"the last call says nothing of what is done: {said}")
    expect(digests(out) == digests(work / "whole"), "a killed and continued call makes other files")
    expect(not partial.exists(), "the partial folder is left")
    for name in ("whole", "killed"):
        shutil.rmtree(work / name)


def compression_does_not_matter(program, work):
    text = "\n".join(documents_of(99, 2000)).encode()
    (work / "plain").write_bytes(text)
    (work / "packed").write_bytes(gzip.compress(text[:1000], mtime=0) + gzip.compress(text[1000:], mtime=0))
    for source, stdin in (("plain", None), ("packed", None), ("-", text), ("-", gzip.compress(text))):
        out = work / f"from{len(list(work.glob('from*')))}"
        program.run("tokenize", "--out", out, source, stdin=stdin)
        expect(digests(out) == digests(work / "from0"), f"{source} makes other files")
    train, _ = program.run("decode", work / "from0")
    held_out, _ = program.run("decode", work / "from0", "--part", "validation")
    expect(train + held_out == text, "decode does not give the text back")
    part, _ = program.run("decode", work / "from0", "--first", 100, "--tokens", 50)
    expect(part == text[100:150], f"decode of a part: {part}")
    program.run("split", work / "from0", "--out", work / "parts", "--shard-tokens", 100_000)
    expect(program.run("decode", work / "parts")[0] == train, "split changes the text")
    program.run("merge", work / "parts", work / "from0", "--out", work / "both")
    expect(program.run("decode", work / "both")[0] == train + train, "merge changes the text")
    shown, _ = program.run("inspect", work / "both")
    expect(f"{2 * len(train)} tokens".encode() in shown, shown)


def inspect_cuts_no_character(program, work):
    for before in range(4):  # the first 72 bytes end at each place of a character of four bytes
        text = "x" * before + "\U0001f600" * 1000
        (work / f"faces{before}").write_text(text)
        program.run("tokenize", "--out", work / f"faces{before}.tokens", work / f"faces{before}")
        shown, _ = program.run("inspect", work / f"faces{before}.tokens")
        try:
            lines = shown.decode().splitlines()
        except UnicodeDecodeError as error:
            raise Failed(f"inspect prints a part of a character: {shown}") from error
        first = text.encode()[:72].decode(errors="ignore")
        expect(f"begins with  {first}" in lines, f"expected '{first}': {lines}")
        held_out = [line for line in lines if line.startswith("held out  ")][-1].removeprefix("held out     ")
        expect(len(held_out) >= 17 and set(held_out) == {"\U0001f600"}, f"held out: {held_out}")


BAD = (
    # Name, contents, options, words of the message.
    ("zip", b"PK\x03\x04" + b"x" * 100, [], ["is a zip archive", "unpack it"]),
    ("nul", b"one\ntwo\0\n", [], ["line 2: a NUL byte"]),
    ("lines", b'{"text": "a"}\n', [], ["--field text", "--format text"]),
    ("broken", b'{"text": "a"}\n{"text": \n', ["--field", "text"], ["line 2: not JSON", "--skip-bad-lines"]),
    ("missing", b'{"text": "a"}\n{"txt": "b"}\n', ["--field", "text"], ["line 2: no field 'text'"]),
    ("cut.gz", gzip.compress(b"line\n" * 1000)[:-9], [], ["the gzip data is cut short", "(after line 1000)", "copy the file again"]),
    ("absent", None, [], ["No such file"]),
)


def bad_input_is_rejected(program, work):
    for name, contents, options, words in BAD:
        if contents is not None:
            (work / name).write_bytes(contents)
        _, said = program.run("tokenize", "--out", work / "rejected", *options, work / name, code=6)
        missing = [word for word in [*words, str(work / name)] if word not in said]
        expect(not missing, f"{name}: does not say {missing}: {said}")
        expect(not list(work.glob("rejected*")), f"{name}: something is left")
    for name, option in (("missing", ["--field", "text"]), ("nul", [])):
        (work / name).write_bytes(BAD[4][1] + b'{"text": "long enough"}\n' if option else b"good one\n\0\ngood two\n")
        shown, _ = program.run("tokenize", "--out", work / f"kept-{name}", *option, "--skip-bad-lines", work / name)
        expect(b"1 bad line, listed in" in shown, shown)
        listed = (work / f"kept-{name}/skipped_lines.txt").read_text()
        expect(listed.startswith(f"{work / name}\t2\t"), listed)
    for wrong in (["--validation", "x"], ["--validation", "0.1", "--val-fraction", "0.1"], ["--threads", "0"],
                  ["--shard-tokens", "0"], ["--format", "text", "--field", "text"]):
        program.run("tokenize", "--out", work / "rejected", *wrong, work / "plain", code=2)


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory(prefix="atoll-tokenize-") as folder:
        work = pathlib.Path(folder)
        program = Program(pathlib.Path(sys.argv[1]).resolve(), work)
        try:
            write_inputs(work / "in")
            threads_do_not_matter(program, work)
            killed_calls_continue(program, work)
            killed_calls_continue(program, work, "--shuffle-documents", 5, "--validation", "hash:0.1")
            compression_does_not_matter(program, work)
            inspect_cuts_no_character(program, work)
            bad_input_is_rejected(program, work)
        except Failed as complaint:
            print(complaint)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
