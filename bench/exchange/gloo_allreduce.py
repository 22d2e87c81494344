#!/usr/bin/env python3
"""PyTorch's gloo all-reduce of one float32 vector by so many processes on this machine.

gloo_allreduce.py WORKERS MIB ROUNDS prints the seconds of each round, one a line (the slowest process's).
"""
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, workers, mib, rounds, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=workers)
    values = torch.full((mib * 2**18,), 1e-3)
    for number in range(rounds + 1):
        dist.barrier()
        begin = time.perf_counter()
        dist.all_reduce(values)
        seconds = torch.tensor([time.perf_counter() - begin])
        dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
        values.fill_(1e-3)
        if rank == 0 and number > 0:
            print(f"{seconds.item():.6f}", flush=True)
    dist.destroy_process_group()


def main():
    workers, mib, rounds = (int(argument) for argument in sys.argv[1:4])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, args=(workers, mib, rounds, port), nprocs=workers)


if __name__ == "__main__":
    main()
