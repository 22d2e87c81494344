#!/usr/bin/python3
"""DiLoCo (arXiv 2311.08105) in the plainest PyTorch, with no code of ours: what Atoll is compared with.

    diloco_reference.py OPTIONS.json RESULT.json

OPTIONS.json (see DEFAULTS for the rest):
  tokens                 folder with train_*.bin and val.bin (llm.c's token files)
  layers, heads, width, context, vocabulary, batch, seed, workers, learning_rate
  mode                   diloco; data_parallel (gradients averaged over all workers' batches at every step); single
  inner_steps, steps     H, and inner steps altogether (rounds = steps / H)
  outer_learning_rate, outer_momentum
  topk, beta             SparseLoCo (arXiv 2508.15706): of each 4096 values of a push the topk largest, in two bits, with
                         error feedback of decay beta; 0: everything is sent
  initial                initial parameters: float32 in the flat layout below, or .safetensors; absent: drawn here
  dump                   folder: after outer step n, params_%03d.f32 in the flat layout (000: the initial ones)

The flat layout is the tensors in the order of `tensor_shapes`, each starting at a multiple of 256 elements, zeros
between. The order of the data is that of docs/reference/data_order.md. RESULT.json has the validation loss at the end, the mean
training loss of every round, and the validation loss after rounds (evaluate_rounds: true).
"""

import glob
import json
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

DEFAULTS = dict(
    mode="diloco", inner_steps=1, steps=1, workers=1, seed=1337, tied_embeddings=True, bias=True, accumulation=1,
    warmup=0, min_learning_rate_ratio=0.1, beta1=0.9, beta2=0.99, epsilon=1e-8, weight_decay=0.1, clip_norm=1.0,
    outer_learning_rate=0.7, outer_momentum=0.9, topk=0, beta=1.0, eval_batches=40, threads=0, initial="", dump="", evaluate_rounds=False,
    dtype="float32")

# --- data: docs/reference/data_order.md

M64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & M64
    return z ^ (z >> 31)


def sample_at(position, samples, seed):
    run_pass, x = divmod(position, samples)
    pass_key = mix((seed + (run_pass + 1) * GOLDEN) & M64)
    keys = [mix((pass_key + (r + 1) * GOLDEN) & M64) for r in range(6)]
    half = max(1, ((samples - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    while True:
        left, right = x >> half, x & mask
        for key in keys:
            left, right = right, left ^ (mix(right ^ key) & mask)
        x = left << half | right
        if x < samples:
            return x


def read_tokens(path):
    header = np.fromfile(path, dtype="<i4", count=256)
    assert header[0] == 20240520 and header[1] == 1, path
    tokens = np.fromfile(path, dtype="<u2", offset=1024)
    assert len(tokens) == header[2], path
    return tokens


class Data:
    def __init__(self, o):
        files = sorted(glob.glob(os.path.join(o.tokens, "*train*.bin")))
        self.train = np.concatenate([read_tokens(f) for f in files])
        self.validation = read_tokens(sorted(glob.glob(os.path.join(o.tokens, "*val*.bin")))[0])
        self.o = o

    def windows(self, text, samples):
        c = self.o.context
        rows = np.stack([text[s * c:s * c + c + 1] for s in samples]).astype(np.int64)
        return torch.from_numpy(rows[:, :-1].copy()), torch.from_numpy(rows[:, 1:].copy())

    def batch(self, partition, partitions, index):
        """Batch `index` of one partition."""
        samples = (len(self.train) - 1) // self.o.context
        first = index * self.o.batch
        return self.windows(self.train, [sample_at(k * partitions + partition, samples, self.o.seed)
                                         for k in range(first, first + self.o.batch)])

    def validation_batches(self):
        samples = (len(self.validation) - 1) // self.o.context
        for b in range(self.o.eval_batches):
            rows = range(b * self.o.batch, min((b + 1) * self.o.batch, samples))
            if len(rows):
                yield self.windows(self.validation, rows)


# --- model: GPT-2, parameters by name


def tensor_shapes(o):
    w, bias = o.width, o.bias
    yield "transformer.wte.weight", (o.vocabulary, w)
    yield "transformer.wpe.weight", (o.context, w)

    def pair(name, *shape):
        yield name + ".weight", shape
        if bias:
            yield name + ".bias", (shape[-1],)

    for i in range(o.layers):
        h = f"transformer.h.{i}."
        yield from pair(h + "ln_1", w)
        yield from pair(h + "attn.c_attn", w, 3 * w)
        yield from pair(h + "attn.c_proj", w, w)
        yield from pair(h + "ln_2", w)
        yield from pair(h + "mlp.c_fc", w, 4 * w)
        yield from pair(h + "mlp.c_proj", 4 * w, w)
    yield from pair("transformer.ln_f", w)
    if not o.tied_embeddings:
        yield "lm_head.weight", (o.vocabulary, w)


def forward(p, x, o):
    def linear(h, name):
        y = h @ p[name + ".weight"]
        return y + p[name + ".bias"] if o.bias else y

    def norm(h, name):
        return F.layer_norm(h, (o.width,), p[name + ".weight"], p.get(name + ".bias"), 1e-5)

    batch, time = x.shape
    h = p["transformer.wte.weight"][x] + p["transformer.wpe.weight"][:time]
    causal = torch.ones(time, time, dtype=torch.bool).tril()
    for i in range(o.layers):
        b = f"transformer.h.{i}."
        q, k, v = linear(norm(h, b + "ln_1"), b + "attn.c_attn").split(o.width, 2)
        q, k, v = (t.view(batch, time, o.heads, -1).transpose(1, 2) for t in (q, k, v))
        a = (q @ k.transpose(2, 3)) / math.sqrt(q.size(3))
        a = a.masked_fill(~causal, -math.inf).softmax(3)
        y = (a @ v).transpose(1, 2).reshape(batch, time, o.width)
        h = h + linear(y, b + "attn.c_proj")
        h = h + linear(F.gelu(linear(norm(h, b + "ln_2"), b + "mlp.c_fc"), approximate="tanh"), b + "mlp.c_proj")
    h = norm(h, "transformer.ln_f")
    head = p["transformer.wte.weight"] if o.tied_embeddings else p["lm_head.weight"]
    return h @ head.t()


def loss_of(p, batch, o):
    x, y = batch
    return F.cross_entropy(forward(p, x, o).view(-1, o.vocabulary), y.view(-1))


# --- parameters in and out


def draw_initial(o):
    generator = torch.Generator().manual_seed(o.seed)
    p = {}
    for name, shape in tensor_shapes(o):
        if len(shape) < 2:
            p[name] = torch.ones(shape) if name.endswith(".weight") else torch.zeros(shape)
        else:
            deviation = 0.02 / math.sqrt(2 * o.layers) if name.endswith("c_proj.weight") else 0.02
            p[name] = torch.empty(shape).normal_(0, deviation, generator=generator)
    return p


def read_initial(o):
    if not o.initial:
        return draw_initial(o)
    if o.initial.endswith(".safetensors"):
        raw = open(o.initial, "rb").read()
        size = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8:8 + size])
        p = {}
        for name, shape in tensor_shapes(o):
            begin, end = header[name]["data_offsets"]
            assert header[name]["dtype"] == "F32" and tuple(header[name]["shape"]) == shape, name
            p[name] = torch.from_numpy(np.frombuffer(raw[8 + size + begin:8 + size + end], "<f4").copy()).view(shape)
        return p
    flat = torch.from_numpy(np.fromfile(o.initial, "<f4"))
    p, at = {}, 0
    for name, shape in tensor_shapes(o):
        p[name] = flat[at:at + math.prod(shape)].view(shape).clone()
        at += (math.prod(shape) + 255) // 256 * 256
    assert at == len(flat), f"{o.initial} has {len(flat)} values, the model {at}"
    return p


def dump(p, o, version):
    if not o.dump:
        return
    os.makedirs(o.dump, exist_ok=True)
    flatten(p.values()).numpy().astype("<f4").tofile(os.path.join(o.dump, f"params_{version:03d}.f32"))


# --- training


def learning_rate(step, o):
    """nanoGPT's: linear warmup, then cosine over all steps of the run."""
    low = o.learning_rate * o.min_learning_rate_ratio
    if step < o.warmup:
        return o.learning_rate * min(1.0, (step + 1) / o.warmup)
    if step >= o.steps:
        return low
    progress = (step - o.warmup) / (o.steps - o.warmup)
    return low + 0.5 * (1 + math.cos(math.pi * progress)) * (o.learning_rate - low)


class Replica:
    """One set of parameters with its inner AdamW."""

    def __init__(self, initial, o):
        self.o = o
        self.p = {n: t.clone().requires_grad_() for n, t in initial.items()}
        matrices = [t for t in self.p.values() if t.dim() >= 2]
        vectors = [t for t in self.p.values() if t.dim() < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": o.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
            lr=o.learning_rate, betas=(o.beta1, o.beta2), eps=o.epsilon)

    def step(self, batches, step):
        """One AdamW step on the mean gradient of the batches; returns the mean loss."""
        self.optimizer.zero_grad()
        total = 0.0
        for batch in batches:
            loss = loss_of(self.p, batch, self.o) / len(batches)
            loss.backward()
            total += loss.item()
        if self.o.clip_norm > 0:
            torch.nn.utils.clip_grad_norm_(self.p.values(), self.o.clip_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(step, self.o)
        self.optimizer.step()
        return total

    def load(self, values):
        with torch.no_grad():
            for name, t in self.p.items():
                t.copy_(values[name])


@torch.no_grad()
def evaluate(p, data, o):
    total = tokens = 0
    for x, y in data.validation_batches():
        total += loss_of(p, (x, y), o).item() * y.numel()
        tokens += y.numel()
    return total / tokens


def flatten(tensors):
    return torch.cat([F.pad(t.detach().float().flatten(), (0, -t.numel() % 256)) for t in tensors])


def two_levels(magnitudes):
    """Each magnitude replaced by its group's mean; the groups are parted by three steps of Lloyd's algorithm."""
    m = magnitudes.double()
    part = m.mean()
    for attempt in range(4):
        upper = m >= part
        low = m[~upper].mean() if (~upper).any() else torch.zeros((), dtype=torch.float64)
        high = m[upper].mean() if upper.any() else torch.zeros((), dtype=torch.float64)
        if attempt < 3:
            part = (low + high) / 2
    return torch.where(upper, high, low).float()


def sparse(values, k):
    """The k largest of each 4096 values, in two bits; the others are zero."""
    out = torch.zeros_like(values)
    for begin in range(0, len(values), 4096):
        block = values[begin:begin + 4096]
        held = math.ceil(k * len(block) / 4096)
        order = torch.sort(block.abs(), descending=True, stable=True).indices[:held].sort().values
        kept = block[order]
        out[begin + order] = torch.where(kept == 0, kept, two_levels(kept.abs()) * kept.sign())
    return out


class SparsePushes:
    """What each worker's push decodes to, and what it leaves for the next one."""

    def __init__(self, o, names):
        self.o, self.names = o, names
        self.residual = [0.0] * o.workers

    def mean(self, theta, replicas):
        total = 0.0
        for w, replica in enumerate(replicas):
            values = self.o.beta * self.residual[w] + flatten(theta[n].detach() - replica.p[n].detach() for n in self.names)
            sent = sparse(values, self.o.topk)
            self.residual[w] = values - sent
            total = total + sent
        return self.unflatten(total / self.o.workers, theta)

    def unflatten(self, flat, like):
        out, at = {}, 0
        for name in self.names:
            out[name] = flat[at:at + like[name].numel()].view_as(like[name]).to(like[name].dtype)
            at += (like[name].numel() + 255) // 256 * 256
        return out


def train_diloco(initial, data, o, finish_round):
    replicas = [Replica(initial, o) for _ in range(o.workers)]
    theta = {n: t.clone().requires_grad_() for n, t in initial.items()}
    outer = torch.optim.SGD(theta.values(), lr=o.outer_learning_rate, momentum=o.outer_momentum,
                            nesterov=o.outer_momentum > 0)
    pushes = SparsePushes(o, list(theta)) if o.topk else None
    for r in range(o.steps // o.inner_steps):
        losses = []
        for w, replica in enumerate(replicas):
            replica.load(theta)
            for h in range(o.inner_steps):
                step = r * o.inner_steps + h
                batches = [data.batch(w, o.workers, step * o.accumulation + a) for a in range(o.accumulation)]
                losses.append(replica.step(batches, step))
        mean = pushes.mean(theta, replicas) if pushes else None
        for name, t in theta.items():
            t.grad = mean[name] if mean else sum((t.detach() - replica.p[name].detach()) for replica in replicas) / o.workers
        outer.step()
        finish_round(r + 1, theta, losses)
    return theta


def train_together(initial, data, o, finish_round, workers):
    """One set of parameters; each step takes the mean gradient over `workers` batches."""
    replica = Replica(initial, o)
    losses = []
    for step in range(o.steps):
        batches = [data.batch(w, workers, step * o.accumulation + a) for w in range(workers)
                   for a in range(o.accumulation)]
        losses.append(replica.step(batches, step))
        if (step + 1) % o.inner_steps == 0:
            finish_round((step + 1) // o.inner_steps, replica.p, losses)
            losses = []
    return replica.p


def main(options_path, result_path):
    o = type("Options", (), dict(DEFAULTS, **json.load(open(options_path))))
    if o.threads:
        torch.set_num_threads(o.threads)
    torch.set_default_dtype(getattr(torch, o.dtype))
    data = Data(o)
    initial = {n: t.to(torch.get_default_dtype()) for n, t in read_initial(o).items()}
    dump(initial, o, 0)
    rounds = []

    def finish_round(version, parameters, losses):
        dump(parameters, o, version)
        rounds.append({"version": version, "train_loss": sum(losses) / len(losses)})
        if o.evaluate_rounds:
            rounds[-1]["validation_loss"] = evaluate(parameters, data, o)

    if o.mode == "diloco":
        final = train_diloco(initial, data, o, finish_round)
    elif o.mode in ("data_parallel", "single"):
        final = train_together(initial, data, o, finish_round, o.workers if o.mode == "data_parallel" else 1)
    else:
        sys.exit(f"unknown mode {o.mode}")
    json.dump({"loss": evaluate(final, data, o), "rounds": rounds}, open(result_path, "w"), indent=1)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
