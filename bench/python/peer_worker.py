"""One worker process of peers.py: runs a loop of peer_loops.py and writes down when each inner step began.

Usage: peer_worker.py LOOP WORKER ADDRESS FOLDER SETTINGS

Writes into FOLDER/wN.marks a line for each start of a step: seconds of the monotonic clock, index of the batch, some parameters. A line that
begins with '#' is an event: the moments of the start and of the imports, and the records of the libraries' loggers.
"""
import importlib
import json
import logging
import os
import sys
import time

LIBRARIES = {"with_atoll": ["atoll"], "with_torchft": ["torchft", "torchft.local_sgd"], "with_hivemind": ["hivemind"]}


class Marks(logging.Handler):
    def __init__(self, path):
        super().__init__(logging.INFO)
        self.file = open(path, "a", buffering=1, encoding="utf-8")

    def event(self, text):
        self.file.write(f"# {time.monotonic():.4f} {text}\n")

    def emit(self, record):
        self.event(f"{record.levelname} {record.getMessage()}".replace("\n", " ")[:300])

    def step(self, batch, parameters):
        self.file.write(f"{time.monotonic():.4f} {batch} {' '.join(f'{value:.9e}' for value in parameters)}\n")


def main():
    loop, worker, address, folder, settings = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], json.loads(sys.argv[5])
    marks = Marks(f"{folder}/w{worker}.marks")
    marks.event("script")
    import torch
    marks.event("torch")
    for name in LIBRARIES.get(loop, []):
        importlib.import_module(name)
    marks.event("library")
    for name in ("", "hivemind"):  # hivemind's loggers do not propagate
        logging.getLogger(name).addHandler(marks)
    logging.getLogger().setLevel(logging.INFO)
    torch.set_num_threads(1)
    import peer_loops
    batches = peer_loops.Batches(worker)
    main_process = os.getpid()

    def before_forward(module, _):
        if isinstance(module, torch.nn.Sequential) and os.getpid() == main_process:
            marks.step(batches.last, [module[i].weight[1, 2].item() for i in (0, 2, 4, 6)])

    torch.nn.modules.module.register_module_forward_pre_hook(before_forward)
    getattr(peer_loops, loop)(batches, worker, address, f"{folder}/w{worker}.state", **settings)


if __name__ == "__main__":
    main()
