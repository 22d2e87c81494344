"""One training loop, alone and with three libraries, as a user would write it. peers.py runs the loops and counts their lines.

A model of 64 MiB: 16,777,216 float32 parameters. The loops have no line for measuring: peers.py watches them from outside.
"""
import torch
from torch.nn import functional

WIDTH, BATCH, H = 2048, 16, 50


def make_model():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)]
    return torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2], torch.nn.ReLU(), layers[3])


class Batches:
    """Batches that never repeat. `last` is the index of the batch that was given last."""

    def __init__(self, worker):
        self.worker, self.last = worker, -1

    def __iter__(self):
        index = 0
        while True:
            source = torch.Generator().manual_seed(1_000_000 * self.worker + index)
            self.last = index
            yield torch.randn(BATCH, WIDTH, generator=source), torch.randint(0, WIDTH, (BATCH,), generator=source)
            index += 1


def plain(batches, worker, address, folder):
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for x, y in batches:
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def with_atoll(batches, worker, address, folder):
    import atoll
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    with atoll.join(address, model, optimizer, name=f"w{worker}", state_dir=folder) as run:
        for x, y in run.steps(batches):
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def with_torchft(batches, worker, address, folder):
    from datetime import timedelta
    from torchft import Manager, ProcessGroupGloo
    from torchft.local_sgd import DiLoCo
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    outer = torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)

    def load_state_dict(state):
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    def state_dict():
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    manager = Manager(pg=ProcessGroupGloo(timeout=timedelta(seconds=5)), min_replica_size=1, load_state_dict=load_state_dict,
                      state_dict=state_dict, replica_id=f"w{worker}", timeout=timedelta(seconds=30), use_async_quorum=False,
                      init_sync=False)
    with DiLoCo(manager, [model], optimizer, outer, sync_every=H):
        for x, y in batches:
            loss = functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def with_hivemind(batches, worker, address, folder, **settings):
    import hivemind
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    dht = hivemind.DHT(initial_peers=[address], start=True)
    optimizer = hivemind.Optimizer(dht=dht, run_id="peers", batch_size_per_step=BATCH, target_batch_size=2 * H * BATCH, optimizer=optimizer,
                                   use_local_updates=True, matchmaking_time=3.0, averaging_timeout=10.0, verbose=True, **settings)
    optimizer.load_state_from_peers()
    for x, y in batches:
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
