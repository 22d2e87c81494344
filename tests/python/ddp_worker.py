"""One rank of an island of two, over gloo. Usage: ddp_worker.py RANK FILE_STORE ADDRESS STATE_DIR OUT [--fsdp] [--buffers] [--term RANK]
[--float64] [--timeout SECONDS] [--bad STEP] [--alone WHAT] [--pace SECONDS]

Writes to OUT.RANK: the end, the samples, the losses, a hash of the parameters after each step, and with --buffers the running statistics
at the beginning of each round.
"""
import argparse
import datetime
import hashlib
import json
import math
import os
import signal
import time

import torch
import torch.distributed

import atoll


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rank", type=int)
    parser.add_argument("store")
    parser.add_argument("address")
    parser.add_argument("state_dir")
    parser.add_argument("out")
    parser.add_argument("--fsdp", action="store_true")
    parser.add_argument("--buffers", action="store_true", help="average the buffers of a BatchNorm")
    parser.add_argument("--term", type=int, default=-1, help="the rank that gets a SIGTERM at its sixth step")
    parser.add_argument("--float64", action="store_true", help="the default type of new tensors; the model stays float32")
    parser.add_argument("--timeout", type=float, default=1800, help="of the process group")
    parser.add_argument("--pace", type=float, default=0, help="seconds of a step")
    parser.add_argument("--alone", choices=["raw", "type", "frozen", "setting", "mine", "optimizer", "evaluate", "fails", "changes"],
                        help="what rank 1 has for itself; raw: no rank averages its gradients")
    parser.add_argument("--bad", type=int, default=-1, help="the step whose gradient is not finite, on rank 1 only")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{arguments.store}", rank=arguments.rank, world_size=2,
                                         timeout=datetime.timedelta(seconds=arguments.timeout))
    torch.manual_seed(arguments.rank)  # different models: the run's parameters must reach both
    norm = torch.nn.BatchNorm1d(6) if arguments.buffers else torch.nn.Tanh()
    generator = torch.Generator().manual_seed(arguments.rank)
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), norm, torch.nn.Linear(6, 1))
    batches = [(torch.randn(3, 4, generator=generator), torch.zeros(3, 1)) for _ in range(5)]
    alone = arguments.alone if arguments.rank == 1 else ""
    if alone == "type":
        model.double()
    if alone == "frozen":
        model[0].bias.requires_grad_(False)
    if arguments.float64:
        torch.set_default_dtype(torch.float64)
    if arguments.fsdp:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
        trained = model
    elif arguments.alone in ("raw", "type", "frozen"):
        trained = model
    else:
        trained = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(trained.parameters(), lr=0.1, weight_decay=0.5 if alone == "setting" else 0.01)
    if alone == "optimizer":
        optimizer = torch.optim.AdamW(torch.nn.Linear(4, 6).parameters(), lr=0.1)
    hashes, stepped, evaluated, statistics = [], [], [], {}

    def evaluate(module, _):
        evaluated.append(type(module).__name__)
        if alone == "fails":
            raise ValueError("no data")
        if alone == "changes":
            next(module.parameters()).add_(1)
        return 1.0 + arguments.rank, 5

    with atoll.join(arguments.address, trained, optimizer, name="w0", state_dir=arguments.state_dir, progress=False,
                    evaluate=None if alone == "evaluate" else evaluate, buffers="mean" if arguments.buffers else None,
                    learning_rate="mine" if alone == "mine" else "run") as run:
        for count, (inputs, targets) in enumerate(run.steps(batches)):
            hashes.append(digest(model))
            if arguments.buffers:
                statistics.setdefault(run.version, [norm.running_mean.tolist(), norm.running_var.tolist()])
            (trained(inputs) - targets).square().mean().backward()
            if count == arguments.bad and arguments.rank == 1:
                next(model.parameters()).grad.fill_(math.nan)
            before = digest(model)
            optimizer.step()
            stepped.append(digest(model) != before)
            time.sleep(arguments.pace)
            optimizer.zero_grad()
            if count == 5 and arguments.rank == arguments.term:
                os.kill(os.getpid(), signal.SIGTERM)
    with open(f"{arguments.out}.{arguments.rank}", "w") as out:
        json.dump({"end": run.end_reason.name, "samples": run.samples, "hashes": hashes, "stepped": stepped, "evaluated": len(evaluated), "statistics": statistics,
                   "optimizer_steps": [int(s["step"]) for s in optimizer.state_dict()["state"].values()]}, out)
    torch.distributed.destroy_process_group()


def digest(model):
    whole = hashlib.sha256()
    for parameter in model.parameters():
        full = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
        whole.update(full.detach().contiguous().numpy().tobytes())
    return whole.hexdigest()


if __name__ == "__main__":
    main()
