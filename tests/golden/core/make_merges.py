#!/usr/bin/env python3
"""Writes merges.txt: every merge of one fixed round, in float64, from the formulas of docs/reference/outer_step.md.

Shares nothing with core/: whole vectors, no blocks, no coefficients. The file is frozen; run this only when a merge
changes on purpose. Values are exact in float32, so that C++ makes the same ones (tests/core/merge_golden_test.cc).
"""

import math
import pathlib

WORKERS, ELEMENTS = 5, 512
TENSORS = [(0, 256), (256, 512)]  # the first is an embedding
WEIGHTS = [1, 2, 3, 4, 6]  # of 16: exact in float32
X = [
    [(((k * 7919 + w * 104729) % 2001 - 1000) / 1024 + (0.5 if k % 3 else -0.25)) * 2.0 ** (w - 2) for k in range(ELEMENTS)]
    for w in range(WORKERS)
]
W = [w / sum(WEIGHTS) for w in WEIGHTS]


def norm(x):
    return math.sqrt(math.fsum(v * v for v in x))


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def mean(x):
    return [math.fsum(w * v[k] for w, v in zip(W, x)) for k in range(len(x[0]))]


def guarded(x):
    middle = median([norm(v) for v in x])
    return [[value * min(1, middle / norm(v)) for value in v] for v in x]


def rda(x):
    merged = mean(x)
    for begin, end in TENSORS[1:]:
        part = [v[begin:end] for v in x]
        size = math.fsum(w * norm(v) for w, v in zip(W, part))
        direction = mean([[value / norm(v) for value in v] for v in part])
        length = norm(direction)
        merged[begin:end] = [size * d / length for d in direction]
    return merged


def trimmed(x, dropped):
    columns = (sorted(v[k] for v in x)[dropped : len(x) - dropped] for k in range(len(x[0])))
    return [math.fsum(c) / len(c) for c in columns]


def centered_clip(x, radius, iterations):
    center = [0.0] * len(x[0])
    for _ in range(iterations):
        away = [[value - c for value, c in zip(v, center)] for v in x]
        pulls = [w * min(1, radius / norm(a)) for w, a in zip(W, away)]
        center = [c + math.fsum(p * a[k] for p, a in zip(pulls, away)) for k, c in enumerate(center)]
    return center


MERGES = {
    "mean": mean(X),
    "guarded_mean": mean(guarded(X)),
    "rda": rda(X),
    "trimmed_mean": trimmed(X, 1),
    "median": trimmed(X, 2),
    "centered_clip": centered_clip(X, median([norm(v) for v in X]), 3),
    "guarded_centered_clip": centered_clip(guarded(X), 4.0, 6),
}

with open(pathlib.Path(__file__).parent / "merges.txt", "w") as file:
    for name, merged in MERGES.items():
        # Enough of them: every ninth value, and digits beyond float32.
        file.write(name + " " + " ".join(f"{v:.12g}" for v in merged[::9]) + "\n")
