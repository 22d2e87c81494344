"""A worker process for the tests: reads token files with atoll.TokenDataset, and writes down each batch.

Usage: token_worker.py ADDRESS NAME STATE_DIR JOURNAL DATA

Each line of the journal is one batch: partition, position before it, its input_ids.
"""
import json
import sys
import time

import torch

import atoll

BATCH = 3


def main():
    address, name, state_dir, journal, folder = sys.argv[1:]
    torch.set_num_threads(1)
    files = atoll.TokenDataset(folder)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with open(journal, "a") as lines, atoll.join(address, model, optimizer, name=name, state_dir=state_dir, progress=False,
                                                 data_fingerprint=files.fingerprint) as run:
        for batch in run.steps(files.for_run(run).batches(BATCH)):
            lines.write(json.dumps([run.partition, run.samples - BATCH, batch["input_ids"].tolist()]) + "\n")
            lines.flush()
            tokens = torch.from_numpy(batch["input_ids"]).float().mean().reshape(1, 1)
            model(tokens / 500).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.02)


if __name__ == "__main__":
    main()
