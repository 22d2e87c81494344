"""A worker of two tensors whose step writes the values of a file (float32), whatever the parameters are; fixed_values.c in Python.

Usage: fixed_worker.py FILE CYCLE ADDRESS NAME STATE_DIR torch|plain

In an overlapped run whose fragments are one tensor each, CYCLE is the number of steps between two exchanges of a fragment; otherwise 0. While
fewer answers were used than the schedule has had, each step takes a tenth of a second. So an answer is there before the next push of its
fragment is due, and every push follows a step on its own base.
"""
import pathlib
import sys
import time

import atoll

FIRST, ROWS, COLUMNS = 7, 13, 77
SAMPLES = 3  # and tokens, of a step
PAUSE_S = 0.1


class TorchTensor:
    def __init__(self, own, wanted):
        self.own, self.wanted = own, wanted

    def holds_wanted(self):
        return self.own.equal(self.wanted)

    def write(self):
        self.own.data.copy_(self.wanted)


class PlainTensor:
    def __init__(self, own, wanted):
        self.own, self.wanted = own, wanted

    def holds_wanted(self):
        return self.own == self.wanted

    def write(self):
        self.own[:] = self.wanted


def torch_model(wanted):
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Parameter(torch.zeros(FIRST))
            self.second = torch.nn.Parameter(torch.zeros(ROWS, COLUMNS))

    model, values = Model(), torch.frombuffer(bytearray(wanted), dtype=torch.float32)
    return model, [TorchTensor(model.first, values[:FIRST]), TorchTensor(model.second, values[FIRST:].view(ROWS, COLUMNS))]


def plain_model(wanted):
    first, second = bytearray(4 * FIRST), bytearray(4 * ROWS * COLUMNS)
    model = {"first": memoryview(first).cast("f"), "second": memoryview(second).cast("f", (ROWS, COLUMNS))}
    return model, [PlainTensor(first, wanted[:len(first)]), PlainTensor(second, wanted[len(first):])]


def main():
    path, cycle, address, name, state_dir, kind = sys.argv[1:]
    cycle = int(cycle)
    model, tensors = (torch_model if kind == "torch" else plain_model)(pathlib.Path(path).read_bytes())
    steps, answers = 0, 0
    with atoll.join(address, model, name=name, state_dir=state_dir, progress=False) as run:
        while run.running:
            for tensor in tensors:
                if steps > 0 and not tensor.holds_wanted():
                    answers += 1
                tensor.write()
            if cycle and answers < steps * len(tensors) // cycle:
                time.sleep(PAUSE_S)
            steps += 1
            run.step(loss=1.0, tokens=SAMPLES, samples=SAMPLES)
    print("ended:", run.end_text)


if __name__ == "__main__":
    main()
