"""One rank of an island of two, over gloo, that may be killed. Usage: killed_rank.py RANK FILE_STORE ADDRESS STATE_DIR OUT [--fsdp]
[--moments] [--pace SECONDS] [--die-at SAMPLES]

Appends each step to OUT.RANK: version, samples of the island before it, indices of this rank's batch. At the end OUT.RANK.end has the end, a
hash of this rank's part of the parameters, and the steps that the optimizer's state has counted. What the ranks compute is a function of the
published parameters, of the place in the data, and with --moments of the optimizer's state.
"""
import argparse
import hashlib
import json
import os
import pathlib
import signal
import time

import torch
import torch.distributed

import atoll
from small_worker import BATCH, Indexed, make


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rank", type=int)
    parser.add_argument("store")
    parser.add_argument("address")
    parser.add_argument("state_dir", type=pathlib.Path)
    parser.add_argument("out")
    parser.add_argument("--fsdp", action="store_true")
    parser.add_argument("--moments", action="store_true", help="AdamW, and each round waits until the state of the one before is on disk")
    parser.add_argument("--pace", type=float, default=0, help="seconds of a step")
    parser.add_argument("--die-at", type=int, default=-1, help="SIGKILL in the step that begins at this sample")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{arguments.store}", rank=arguments.rank, world_size=2)
    model, _ = make()
    if arguments.fsdp:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
        trained = model
    else:
        trained = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(trained.parameters()) if arguments.moments else torch.optim.SGD(trained.parameters(), lr=0.05)
    # Of shared data the run chooses the order; of local data this sampler does, another one in each pass.
    sampler = torch.utils.data.DistributedSampler(Indexed(), num_replicas=2, rank=arguments.rank, shuffle=True, seed=3)
    loader = torch.utils.data.DataLoader(Indexed(), batch_size=BATCH, sampler=sampler)
    with open(f"{arguments.out}.{arguments.rank}", "a") as journal, atoll.join(
            arguments.address, trained, optimizer, name="w0", state_dir=arguments.state_dir, progress=False) as run:
        for inputs, targets, indices in run.steps(loader):
            if arguments.moments:
                await_state(arguments.state_dir, run.version)
            position = run.samples - 2 * len(indices)
            journal.write(json.dumps([run.version, position, indices.tolist()]) + "\n")
            journal.flush()
            (trained(inputs).squeeze(1) - targets).square().mean().backward()
            if position == arguments.die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(arguments.pace)
    with open(f"{arguments.out}.{arguments.rank}.end", "w") as end:
        json.dump({"end": run.end_reason.name, "hash": digest_of_part(model),
                   "steps": sorted({int(state["step"]) for state in optimizer.state_dict()["state"].values() if "step" in state})}, end)
    torch.distributed.destroy_process_group()


def digest_of_part(model):
    """Without a collective: PyTorch 2.13 may abort a process that ends right after one (atoll/distributed.py)."""
    whole = hashlib.sha256()
    for parameter in model.parameters():
        part = parameter.to_local() if hasattr(parameter, "to_local") else parameter
        whole.update(part.detach().contiguous().numpy().tobytes())
    return whole.hexdigest()


def await_state(state_dir, rounds):
    """Until the state after so many rounds is on disk. It is written beside the steps, and left out where the disk is late."""
    deadline = time.monotonic() + 60
    while max((int(path.name[-6:]) for path in state_dir.glob("progress/round-??????")), default=0) < rounds:
        if time.monotonic() > deadline:
            raise AssertionError(f"no state of round {rounds} in {[path.name for path in state_dir.rglob('*')]}")
        time.sleep(0.002)


if __name__ == "__main__":
    main()
