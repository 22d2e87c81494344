"""Talks to atoll-tokenizer-probe (probe.cc)."""
import array
import struct
import subprocess


class Probe:
    def __init__(self, program, file, pattern=""):
        self._process = subprocess.Popen([program, file, *([pattern] if pattern else [])], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._process.stderr.close()

    def ask(self, what, data=b""):
        try:
            self._process.stdin.write(what.encode() + struct.pack("<I", len(data)) + data)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        head = self._process.stdout.read(4)
        if len(head) < 4:
            raise RuntimeError(self._process.stderr.read().decode())
        return self._process.stdout.read(struct.unpack("<I", head)[0])

    def encode(self, data, what="e"):
        tokens = array.array("I")
        tokens.frombytes(self.ask(what, data))
        return tokens.tolist()

    def decode(self, tokens):
        return self.ask("d", array.array("I", tokens).tobytes())

    def info(self):
        """name, vocabulary, end of text or -1, whether decode(encode(x)) = x for every x."""
        name, *numbers = self.ask("i").decode().rsplit(" ", 3)
        return (name, *map(int, numbers))

    def seconds(self, data, threads=1):
        """How long encoding takes, and the number of tokens."""
        nanoseconds, tokens = struct.unpack("<QI", self.ask("t" if threads == 1 else "T", data))
        return nanoseconds / 1e9, tokens
