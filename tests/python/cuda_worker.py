"""A worker that trains the model of small_gpt.py on a GPU, in one of the ways in which such loops are written.

Usage: cuda_worker.py WAY ADDRESS NAME STATE_DIR TOKENS LAYERS HEADS WIDTH CONTEXT BATCH

WAY: plain, autocast (bf16), scaler (fp16 with a GradScaler), compile, ddp (one rank over NCCL), fsdp (one rank). The last line of the output is
JSON: how the worker ended, and how far its model is from the published one.
"""
import contextlib
import json
import pathlib
import sys

import torch

import atoll
from small_gpt import Gpt, Windows, read_tokens

AUTOCAST = {"autocast": torch.bfloat16, "scaler": torch.float16, "ddp": torch.bfloat16, "compile": torch.bfloat16}


def wrapped(way, model, state_dir):
    if way in ("ddp", "fsdp"):
        store = pathlib.Path(f"{state_dir}.store")
        torch.distributed.init_process_group("nccl", init_method=f"file://{store.resolve()}", rank=0, world_size=1)
    if way == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    if way == "fsdp":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        return fully_shard(model, mesh=init_device_mesh("cuda", (1,)))
    return torch.compile(model) if way == "compile" else model


def plain_values(model):
    """{name: tensor on the processor}"""
    found = {}
    for name, parameter in model.named_parameters():
        full = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
        found[name] = full.detach().cpu()
    return found


def main():
    way, address, name, state_dir, folder = sys.argv[1:6]
    layers, heads, width, context, batch = map(int, sys.argv[6:])
    torch.manual_seed(1)
    torch.cuda.set_device(0)
    model = Gpt(layers, heads, width, context).cuda()
    trained = wrapped(way, model, state_dir)
    matrices = [p for p in trained.parameters() if p.dim() > 1]
    vectors = [p for p in trained.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0}], betas=(0.9, 0.99))
    scaler = torch.amp.GradScaler("cuda", enabled=way == "scaler")
    autocast = torch.autocast("cuda", dtype=AUTOCAST[way]) if way in AUTOCAST else contextlib.nullcontext()
    loader = torch.utils.data.DataLoader(Windows(read_tokens(folder), context), batch_size=batch, shuffle=True, pin_memory=True)
    losses = []
    with atoll.join(address, trained, optimizer, name=name, state_dir=state_dir, progress=False) as run:
        for window in run.steps(loader):
            window = window.cuda(non_blocking=True)
            with autocast:
                logits = trained(window[:, :-1])
                loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), window[:, 1:].flatten())
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            run.report(loss=loss.item(), tokens=batch * context)
            losses.append(loss.item())
    mine, published = plain_values(model), atoll.pull(address)
    apart = max(float((mine[key] - published[key]).abs().max()) for key in mine)
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    print(json.dumps({"way": way, "end": run.end_reason.name, "version": run.version, "published": published.version, "steps": len(losses),
                      "first": losses[0], "last": losses[-1], "tensors": [len(mine), len(published)], "apart": apart,
                      "device": str(next(model.parameters()).device), "finite": all(bool(v.isfinite().all()) for v in published.values())}))


if __name__ == "__main__":
    main()
