"""A worker of two tensors whose step writes the values of a file (float32), whatever the parameters are; fixed_values.c in Python.

Usage: fixed_worker.py FILE ADDRESS NAME STATE_DIR torch|plain
"""
import pathlib
import sys

import atoll

FIRST, ROWS, COLUMNS = 7, 13, 77
SAMPLES = 3  # and tokens, of a step


def torch_model(wanted):
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Parameter(torch.zeros(FIRST))
            self.second = torch.nn.Parameter(torch.zeros(ROWS, COLUMNS))

    model, values = Model(), torch.frombuffer(bytearray(wanted), dtype=torch.float32)

    def step():
        with torch.no_grad():
            model.first.copy_(values[:FIRST])
            model.second.copy_(values[FIRST:].view(ROWS, COLUMNS))

    return model, step


def plain_model(wanted):
    first, second = bytearray(4 * FIRST), bytearray(4 * ROWS * COLUMNS)

    def step():
        first[:], second[:] = wanted[:len(first)], wanted[len(first):]

    return {"first": memoryview(first).cast("f"), "second": memoryview(second).cast("f", (ROWS, COLUMNS))}, step


def main():
    path, address, name, state_dir, kind = sys.argv[1:]
    model, step = (torch_model if kind == "torch" else plain_model)(pathlib.Path(path).read_bytes())
    with atoll.join(address, model, name=name, state_dir=state_dir, progress=False) as run:
        while run.running:
            step()
            run.step(loss=1.0, tokens=SAMPLES, samples=SAMPLES)
    print("ended:", run.end_text)


if __name__ == "__main__":
    main()
