#!/usr/bin/env python3
"""A coordinator that is killed (SIGKILL) while it imports a model leaves no half run.

At every fault point of an import, and at moments spread over the time that an import takes: afterwards a start without --import
serves the whole model or is refused, never anything between; a start with --import serves the model, bit for bit.

Usage: import_kill_test.py BIN_DIR. Exit codes: 0 all of it, 1 not (the complaint is printed).
"""
import array
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

CONFIG = """
run: {name: killed, workers: 1, rounds: 3}
model: {gpt: {layers: 1, heads: 1, width: 64, context: 64, vocabulary: 32768}}
data: {tokenizer: bytes}
inner: {steps: 2, learning_rate: 0.001, batch: 2}
checkpoint: {shards: 2}
"""
WIDTH, CONTEXT, VOCABULARY = 64, 64, 32768
USAGE = 2
# What a start without --import finds after a death at this place: no run, the note of an import, or the whole model.
NOTHING, INTERRUPTED, WHOLE = "no run", "interrupted", "whole"
POINTS = {"import.noted": NOTHING, "create.ready": NOTHING, "create.recorded": INTERRUPTED, "ingest.written": INTERRUPTED,
          "ingest.done": INTERRUPTED, "seed.ready": INTERRUPTED, "seed.recorded": WHOLE}
MOMENTS = 6


def write_weights(path):
    shapes = {"transformer.wte.weight": [VOCABULARY, WIDTH], "transformer.wpe.weight": [CONTEXT, WIDTH]}
    parts = {"ln_1": [WIDTH], "attn.c_attn": [WIDTH, 3 * WIDTH], "attn.c_proj": [WIDTH, WIDTH], "ln_2": [WIDTH],
             "mlp.c_fc": [WIDTH, 4 * WIDTH], "mlp.c_proj": [4 * WIDTH, WIDTH]}
    for name, shape in {**{f"h.0.{part}": shape for part, shape in parts.items()}, "ln_f": [WIDTH]}.items():
        shapes[f"transformer.{name}.weight"] = shape
        shapes[f"transformer.{name}.bias"] = shape[-1:]
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 4
        for length in shape:
            size *= length
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    pattern = array.array("f", (((i * 7919) % 10007 - 5000) / 4093 for i in range(10007))).tobytes()
    values = (pattern * (offset // len(pattern) + 1))[:offset]
    path.write_bytes(struct.pack("<Q", len(text)) + text + values)
    return values


class Import:
    """A data directory, and starts of a coordinator in it."""

    def __init__(self, programs, folder, weights):
        self.programs, self.folder, self.weights = programs, folder, weights
        folder.mkdir()
        (folder / "run.yaml").write_text(CONFIG)

    def start(self, *more, fault="", config=True):
        (self.folder / "ports").unlink(missing_ok=True)
        named = ["--config", self.folder / "run.yaml"] if config else []
        self.log = open(self.folder / "log", "w+b")
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", self.programs / "atoll-coordinator", *named, "--data-dir", self.folder / "data",
             "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--metrics-listen", "", "--web-listen", "",
             "--port-file", self.folder / "ports", *more], env={**os.environ, "ATOLL_FAULT": fault},
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def said(self):
        return (self.folder / "log").read_text()

    def wait_for_note(self):
        """Until the import begins to change the data directory. False if it is over already."""
        while not (self.folder / "data/import.begun").exists():
            if (self.folder / "ports").exists() or self.process.poll() is not None:
                return False
            time.sleep(0.0005)
        return True

    def serves(self):
        """Whether it came to serve; if not, it has ended."""
        deadline = time.monotonic() + 60
        while not (self.folder / "ports").exists():
            if self.process.poll() is not None:
                self.log.close()
                return False
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.01)
        return True

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0, self.said()
        self.log.close()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def exported(self):
        """The values that it serves; none while the run is not seeded."""
        ports = json.loads((self.folder / "ports").read_text())
        done = subprocess.run([self.programs / "atollctl", "--admin", ports["admin"], "--coordinator", ports["data"], "export",
                               "--out", self.folder / "model"], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            assert "no parameters yet" in done.stderr, done
            return None
        contents = (self.folder / "model").read_bytes()
        return contents[8 + struct.unpack("<Q", contents[:8])[0]:]


def found(one):
    """What a start without --import, and without a configuration, finds."""
    one.start(config=False)
    if one.serves():
        try:
            assert one.exported() == one.weights, "something else than the model is served"
            one.stop()
        finally:
            one.kill()
        return WHOLE
    assert one.process.returncode == USAGE, (one.process.returncode, one.said())
    if "there is no run in" in one.said() or "has no configuration yet" in one.said():
        return NOTHING
    assert "was interrupted: the run has no parameters. Start it with --import again" in one.said(), one.said()
    return INTERRUPTED


def check_with_a_configuration(one, state):
    """It begins another run in an empty directory only."""
    copy = one.folder.with_name(one.folder.name + "-copy")
    shutil.copytree(one.folder, copy)
    other = Import.__new__(Import)
    other.programs, other.folder, other.weights = one.programs, copy, one.weights
    other.start()
    if not other.serves():
        assert state == INTERRUPTED and other.process.returncode == USAGE, (state, other.said())
        assert "was interrupted" in other.said(), other.said()
        return
    try:
        assert other.exported() == {NOTHING: None, WHOLE: one.weights}[state], (state, "a half run is served")
        other.stop()
    finally:
        other.kill()


def check_after_death(one, file, expected=None):
    state = found(one)
    assert expected in (None, state), (expected, state, one.said())
    if expected is not None:
        check_with_a_configuration(one, state)
    one.start("--import", file)
    assert one.serves(), one.said()
    try:
        assert one.exported() == one.weights, "the import that was repeated has other values"
        assert not (one.folder / "data/import.begun").exists(), "the note of the import is left"
        one.stop()
    finally:
        one.kill()
    return state


def at_points(programs, folder, file, weights):
    for point, expected in POINTS.items():
        one = Import(programs, folder / point, weights)
        one.start("--import", file, fault=f"{point}:1")
        assert not one.serves() and one.process.returncode == -signal.SIGKILL, (point, one.said())
        check_after_death(one, file, expected)


def at_moments(programs, folder, file, weights):
    whole = Import(programs, folder / "whole", weights)
    whole.start("--import", file)
    whole.wait_for_note()
    begun = time.monotonic()
    assert whole.serves(), whole.said()
    takes = time.monotonic() - begun
    whole.kill()
    states = []
    for moment in range(MOMENTS):
        one = Import(programs, folder / f"moment{moment}", weights)
        one.start("--import", file)
        one.wait_for_note()
        time.sleep(takes * moment / MOMENTS)
        one.kill()
        states.append(check_after_death(one, file))
    return states


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="atoll-import-kill-") as name:
        folder = pathlib.Path(name)
        file = folder / "weights.safetensors"
        weights = write_weights(file)
        at_points(programs, folder, file, weights)
        states = at_moments(programs, folder, file, weights)
    print(f"killed at {len(POINTS)} points and {MOMENTS} moments: {', '.join(states)}")


if __name__ == "__main__":
    main()
