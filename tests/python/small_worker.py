"""A worker process for the tests: trains a small model on indexed data, and writes down each step.

Usage: small_worker.py ADDRESS NAME STATE_DIR JOURNAL [--pace SECONDS] [--progress]

Each line of the journal is one step: version, position before it, partition, indices of its batch. What the worker computes is a function of
the published parameters and of its place in the data: plain SGD, no dropout, no shuffling.
"""
import argparse
import json
import time

import torch

import atoll

SAMPLES = 24  # eight batches: passes end in the middle of rounds of five steps
BATCH = 3


class Indexed(torch.utils.data.Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        inputs = torch.randn(4, generator=torch.Generator().manual_seed(index))
        return inputs, inputs.sum(), index


def make():
    torch.manual_seed(21)
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("name")
    parser.add_argument("state_dir")
    parser.add_argument("journal")
    parser.add_argument("--pace", type=float, default=0)
    parser.add_argument("--progress", action="store_true", help="as an ordinary worker shows it")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model, optimizer = make()
    loader = torch.utils.data.DataLoader(Indexed(), batch_size=BATCH)
    with open(arguments.journal, "a") as journal, atoll.join(
            arguments.address, model, optimizer, name=arguments.name, state_dir=arguments.state_dir,
            progress=None if arguments.progress else False) as run:
        for inputs, targets, indices in run.steps(loader):
            position = run.samples - len(indices)
            journal.write(json.dumps([run.version, position, run.partition, indices.tolist()]) + "\n")
            journal.flush()
            (model(inputs).squeeze(1) - targets).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            if arguments.pace:
                time.sleep(arguments.pace)
    print("ended:", run.end_text)


if __name__ == "__main__":
    main()
