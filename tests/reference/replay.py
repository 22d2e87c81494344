#!/usr/bin/env python3
"""Replays a run of real workers in plain PyTorch, with no code of Atoll: outer optimizers, weights, error feedback, privacy.

Usage: /usr/bin/python3 replay.py OPTIONS.json RESULT.json

OPTIONS.json: what diloco_reference.py takes for the model, the data and the inner steps, and
  rounds                 [{"version", "outer_step", "parameters", "contributions": [{"worker", "base", "steps", "partition",
                         "first_sample", "sent"}]}]; "parameters" and "sent" are float32 files of the run: the version that the
                         round made, and what a push decoded to. A worker's contributions are in the order it made them
  outer_optimizer        sgd, nesterov, delayed_nesterov (arXiv 2401.09135, algorithm 3: outer_delay, outer_spread)
  push                   fp32; int4 with LoCo's error feedback (arXiv 2407.04480) of decay `beta`, which starts at zero again
                         when a multiple of `feedback_reset` versions lies between two bases
  privacy_clip, noise_multiplier
                         pushes are clipped to this norm, then get normal noise of deviation noise_multiplier * privacy_clip
                         (arXiv 1710.06963)
  trials                 runs of this program's own (see RESULT.json)

RESULT.json answers two questions.
1. Is every step of the run the algorithm's? Each contribution is trained again from the run's own base, once in float64
   ("delta") and `roundings` times in float32, so an error cannot grow from round to round:
     rounds[].contributions[].delta_error, rounding: distance from the float64 result, of the run's push and of the farthest
       float32 result, relative to its norm. Two float32 programs with different orders of summation differ like these two do.
       With noise, the run's push has it and there is no delta_error; with int4, see the next line.
     .other_levels, levels_rounding: int4: share of values that have another level than in float64, in the run and in float32.
     .loss, .loss_rounding: mean loss in float64; what float32 changes of it.
     .noise: of what was added to the clipped push: deviation, mean, correlation with the push.
     rounds[].error: distance of the run's version from the outer step in float64 on the run's own pushes and previous version,
       relative to the norm of that version.
2. Does the run learn as the algorithm does? "losses": the validation loss at the end of `trials` runs of the same rounds, from
   the same start, by this program alone. Each contribution of a trial has noise of the size of `rounding`, or its own privacy
   noise: their spread says what rounding, or noise, makes of the loss. "loss": that of the run's last version, evaluated here.
"""
import json
import math
import sys
import types

import numpy as np
import torch
import torch.nn.functional as F

from diloco_reference import DEFAULTS, Data, Replica, evaluate, flatten, read_initial, tensor_shapes

MORE = dict(rounds=(), outer_optimizer="nesterov", outer_delay=1, outer_spread=0.0, push="fp32", feedback_reset=0, privacy_clip=0.0,
            noise_multiplier=0.0, trials=8, roundings=4)


def read_floats(path):
    return torch.from_numpy(np.fromfile(path, "<f4"))


def flatten64(tensors):
    return torch.cat([F.pad(t.detach().double().flatten(), (0, -t.numel() % 256)) for t in tensors])


def int4_scales(values):
    """(blocks, scale of each): docs/reference/codecs.md; blocks of 256 values, seven levels on each side."""
    blocks = F.pad(values, (0, -len(values) % 256)).view(-1, 256)
    return blocks, blocks.abs().max(dim=1, keepdim=True).values / 7


def int4(values):
    """Nearest level, ties to even."""
    blocks, scale = int4_scales(values)
    levels = torch.where(scale > 0, (blocks / scale).clamp(-7, 7).round(), torch.zeros_like(blocks))
    return (levels * scale).flatten()[:len(values)]


class LoCo:
    """A moving average of what one worker's low-bit pushes lost."""

    def __init__(self, o):
        self.o = o
        self.error, self.last_base = 0.0, 0

    def whole(self, delta, base):
        reset = self.o.feedback_reset
        if reset and base // reset != self.last_base // reset:
            self.error = 0.0
        self.last_base = base
        return self.error + delta

    def keep(self, whole, sent):
        self.error = self.o.beta * self.error + (1 - self.o.beta) * (whole - sent)


class OuterStep:
    def __init__(self, o, like):
        self.o = o
        self.momentum, self.gathered = torch.zeros_like(like), torch.zeros_like(like)

    def __call__(self, theta, mean, step):
        o, mu = self.o, self.o.outer_momentum
        if o.outer_optimizer == "sgd":
            return theta - o.outer_learning_rate * mean
        if o.outer_optimizer == "nesterov":
            self.momentum = mu * self.momentum + mean
            return theta - o.outer_learning_rate * (mean + mu * self.momentum)
        n, c = o.outer_delay, o.outer_spread
        self.gathered = self.gathered + mean
        pull = c
        if step % n == 0:
            self.momentum = mu * self.momentum + self.gathered / n
            self.gathered = torch.zeros_like(mean)
            pull = 1 - c * n + c
        return theta - o.outer_learning_rate * (mean / n + pull * mu * self.momentum)


def merged(pushes, record):
    """Weighted by tokens (all steps have as many), less when stale."""
    weights = [one["steps"] / (1 + (record["version"] - 1 - one["base"]) / 4) for one in record["contributions"]]
    return sum(weight / sum(weights) * push for weight, push in zip(weights, pushes))


class Trainers:
    """The workers of a run, each with its AdamW and its place in the data, in one precision."""

    def __init__(self, initial, data, o, dtype):
        self.data, self.o, self.shapes = data, o, dict(tensor_shapes(o))
        self.initial = {name: t.to(dtype) for name, t in initial.items()}
        self.replicas, self.rewarm = {}, {}

    def options_at(self, worker):
        """Those of the next step; the learning rate is 1/n, 2/n, ... of its own in the n steps of a warmup."""
        steps, taken = self.rewarm[worker]
        if taken == steps:
            return self.o
        self.rewarm[worker][1] += 1
        return types.SimpleNamespace(**{**vars(self.o), "learning_rate": self.o.learning_rate * (taken + 1) / steps})

    def tensors(self, flat):
        out, at = {}, 0
        for name, shape in self.shapes.items():
            count = math.prod(shape)
            out[name] = flat[at:at + count].view(shape)
            at += (count + 255) // 256 * 256
        return out

    def train(self, one, base):
        """(pseudo-gradient in float64, mean loss) of a contribution."""
        if one["worker"] not in self.replicas:
            self.replicas[one["worker"]] = Replica(self.initial, self.o)
            # A fresh AdamW in the middle of a run is warmed up (arXiv 1910.04209), for one round at most.
            self.rewarm[one["worker"]] = [min(math.ceil(2 / (1 - self.o.beta2) - 1e-9), self.o.inner_steps) if one["base"] else 0, 0]
        replica = self.replicas[one["worker"]]
        replica.load(self.tensors(base))
        before = flatten64(replica.p.values())
        losses = []
        for step in range(one["steps"]):
            index = one["first_sample"] // self.o.batch + step
            replica.o = self.options_at(one["worker"])
            losses.append(replica.step([self.data.batch(one["partition"], self.o.workers, index)], 0))
        return before - flatten64(replica.p.values()), sum(losses) / len(losses)


def distance(a, b):
    return ((a - b).norm() / b.norm()).item()


class StepByStep:
    """Every step of the run on what the run itself had before it."""

    def __init__(self, initial, data, o):
        self.o = o
        self.exact = Trainers(initial, data, o, torch.float64)
        self.rounded = [Trainers(initial, data, o, torch.float32) for _ in range(o.roundings)]
        self.draw = torch.Generator().manual_seed(o.seed)
        self.versions = [flatten(initial.values())]
        self.real = flatten(torch.ones_like(t) for t in initial.values()) > 0  # padding is no parameter
        self.outer = OuterStep(o, self.versions[0].double())
        self.feedback = {}

    def contribution(self, one):
        base = self.versions[one["base"]]
        delta, loss = self.exact.train(one, base)
        others = [trainers.train(one, self.shaken(base, number)) for number, trainers in enumerate(self.rounded)]
        rounded = max((of for of, _ in others), key=lambda of: distance(of, delta))
        sent = read_floats(one["sent"]).double() * self.real
        found = {"loss": loss, "loss_rounding": max(abs(loss - of) for _, of in others), "rounding": distance(rounded, delta)}
        if self.o.push == "int4":
            found.update(self.levels(one, delta, rounded, sent))
        elif self.o.privacy_clip:
            found["noise"] = self.noise(delta, sent)
        else:
            found["delta_error"] = distance(sent, delta)
        one["rounding"] = found["rounding"]
        return found, sent

    def shaken(self, base, number):
        """Each value changed by one rounding at most, but for the first pass: another order of summation."""
        if number == 0:
            return base
        return base * (1 + (2 * torch.rand(len(base), generator=self.draw) - 1) * 2.0**-24)

    def levels(self, one, delta, rounded, sent):
        blocks, scale = int4_scales(sent)
        used = self.real.view(-1, 256) & (scale > 0)
        levels = []
        for name, pushed in (("exact", delta), ("rounded", rounded)):
            loco = self.feedback.setdefault((one["worker"], name), LoCo(self.o))
            whole = loco.whole(pushed, one["base"])
            loco.keep(whole, sent)
            levels.append((whole.view(-1, 256) / scale).clamp(-7, 7).round()[used])
        other, rounding = ((levels[0] != of).double().mean().item() for of in ((blocks / scale).round()[used], levels[1]))
        return {"other_levels": other, "levels_rounding": rounding}

    def noise(self, delta, sent):
        norm = delta.norm().item()
        clipped = (delta * min(1.0, self.o.privacy_clip / norm))[self.real]
        noise = sent[self.real] - clipped
        return {"norm": norm, "deviation": noise.std().item(), "mean": noise.mean().item(), "values": len(noise),
                "correlation": torch.corrcoef(torch.stack([noise, clipped]))[0, 1].item()}

    def round(self, record):
        done = [self.contribution(one) for one in record["contributions"]]
        mean = merged([sent for _, sent in done], record)
        theta = self.outer(self.versions[-1].double(), mean, record["outer_step"])
        made = read_floats(record["parameters"])
        self.versions.append(made)
        return {"version": record["version"], "error": distance(made[self.real].double(), theta[self.real]),
                "contributions": [found for found, _ in done]}


def trial(number, initial, data, o):
    """The loss at the end of a run of this program's own, on the rounds of the run."""
    draw = torch.Generator().manual_seed(number)
    trainers = Trainers(initial, data, o, torch.float32)
    versions = [flatten(initial.values())]
    real = flatten(torch.ones_like(t) for t in initial.values())
    outer, feedback = OuterStep(o, versions[0]), {}
    for record in o.rounds:
        pushes = []
        for one in record["contributions"]:
            delta = trainers.train(one, versions[one["base"]])[0].float()
            deviation = one["rounding"] * delta.norm().item() / math.sqrt(len(delta))
            if o.privacy_clip:
                delta = delta * min(1.0, o.privacy_clip / delta.norm().item())
                deviation = o.noise_multiplier * o.privacy_clip
            delta = delta + real * deviation * torch.randn(len(delta), generator=draw)
            if o.push == "int4":
                loco = feedback.setdefault(one["worker"], LoCo(o))
                whole = loco.whole(delta, one["base"])
                delta = int4(whole)
                loco.keep(whole, delta)
            pushes.append(delta)
        versions.append(outer(versions[-1], merged(pushes, record), record["outer_step"]))
    return evaluate(trainers.tensors(versions[-1]), data, o)


def check_complete(o):
    """A push that was refused leaves no record, but its steps moved the worker's AdamW, and its content is in the next push."""
    next_sample = {}
    for record in o.rounds:
        for one in record["contributions"]:
            partition, first = one["partition"], one["first_sample"]
            expected = next_sample.get(partition, 0)
            if first != expected:
                sys.exit(f"version {record['version']}: {one['worker']} begins partition {partition} at sample {first}; no "
                         f"contribution has its sample {expected}, so this run cannot be replayed")
            next_sample[partition] = first + one["steps"] * o.batch


def main(options_path, result_path):
    o = types.SimpleNamespace(**{**DEFAULTS, **MORE, **json.load(open(options_path))})
    torch.set_num_threads(1)
    data, initial = Data(o), read_initial(o)
    check_complete(o)
    run = StepByStep(initial, data, o)
    rounds = []
    for record in o.rounds:
        assert record["version"] == len(run.versions), "the rounds are in order and none is left out"
        rounds.append(run.round(record))
    losses = [trial(number, initial, data, o) for number in range(o.trials)]
    json.dump({"rounds": rounds, "losses": losses, "loss": evaluate(run.exact.tensors(run.versions[-1]), data, o)},
              open(result_path, "w"), indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:3])
