#!/usr/bin/env python3
"""What a way of sending costs in loss: real runs (coordinator, workers, sockets), equal tokens, paired seeds.

Every recipe is run with the same seeds as the first one (fp32 both ways, blocking), so that the difference of two
losses is the recipe's and not the seed's; the table gives the mean difference and its standard error.

    bench/quality.py --tokens run/quickstart/tokens                           all recipes, 4 workers, 3 seeds
    bench/quality.py --tokens DIR --workers 8 --recipes fp32,int8,e3m0 --seeds 1,2,3
    bench/quality.py --tokens DIR --add "int8-both=codec: {push: int8, pull: bf16}"

Results go to --out (JSON, after every run; runs that are in it already are not done again) and to standard output
as a Markdown table.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import statistics
import sys

import convergence

FLOAT32 = "codec: {push: fp32, pull_delta: none}"
# What each recipe adds to the configuration of bench/convergence.py.
RECIPES = {
    "fp32": FLOAT32,
    "bf16": "codec: {push: bf16, pull_delta: none}",
    "int8": "codec: {push: int8, pull_delta: none}",
    "int4": "codec: {push: int4, pull_delta: none}",
    "e3m0": "codec: {push: e3m0, pull_delta: none}",
    "topk64": "codec: {push: topk64, pull_delta: none, error_feedback_beta: 0.95}",
    "topk128": "codec: {push: topk128, pull_delta: none, error_feedback_beta: 0.95}",
    "delta-int8": "codec: {push: fp32, pull_delta: int8}",
    "delta-e3m0": "codec: {push: fp32, pull_delta: e3m0}",
    "e3m0+delta-e3m0": "codec: {push: e3m0, pull_delta: e3m0}",
    "overlap5": "sync: {mode: overlapped, fragments: 2, delay_steps: 5}\n" + FLOAT32,
    "overlap5-e3m0": "sync: {mode: overlapped, fragments: 2, delay_steps: 5}\ncodec: {push: e3m0, pull_delta: e3m0}",
    "overlap5-blend": "sync: {mode: overlapped, fragments: 2, delay_steps: 5, answer: blend, alpha: 0.5}\n" + FLOAT32,
}
# The same in plain PyTorch, with no code of ours (tests/reference/diloco_reference.py).
TORCH = {"torch-topk64": {"topk": 64, "beta": 0.95}, "torch-topk128": {"topk": 128, "beta": 0.95}}


def run(args, recipe, more, seed):
    args.seed = seed
    if recipe in TORCH:
        return dict(convergence.reference(args, "diloco", args.inner_steps, 1.0, 0.0, **TORCH[recipe]), moved_bytes=0)
    # SparseLoCo (arXiv 2508.15706) takes a plain step: no outer momentum. So does what begins with the name.
    plain = recipe.startswith("topk")
    outer = "{optimizer: sgd, learning_rate: 1}" if plain else \
        f"{{optimizer: nesterov, learning_rate: {args.outer[0]}, momentum: {args.outer[1]}}}"
    name = "".join(c if c.isalnum() else "-" for c in recipe)
    yaml = convergence.config_yaml(name, args.workers, args.steps, args.inner_steps, outer, 1, args, more)
    return convergence.Run(args, name, args.workers, yaml).execute()


def report(results, args):
    lines = [f"{args.workers} workers, {args.steps} inner steps, H = {args.inner_steps}, outer {args.outer}, "
             f"{os.cpu_count()} cores, {datetime.date.today()}", "",
             "| recipe | seeds | validation loss, mean | against fp32 | standard error | MB moved |",
             "|---|---|---|---|---|---|"]
    base = results.get("fp32", {})
    for recipe, by_seed in results.items():
        losses = [r["loss"] for r in by_seed.values()]
        pairs = [100 * (by_seed[s]["loss"] / base[s]["loss"] - 1) for s in by_seed if s in base]
        error = f"{statistics.stdev(pairs) / math.sqrt(len(pairs)):.2f} %" if len(pairs) > 1 else "-"
        moved = statistics.mean(r["moved_bytes"] for r in by_seed.values()) / 1e6
        difference = f"{statistics.mean(pairs):+.2f} %" if pairs else "-"
        lines.append(f"| {recipe} | {len(losses)} | {statistics.mean(losses):.4f} | {difference} | {error} | {moved:.1f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=pathlib.Path, required=True, help="folder made by atoll-data tokenize")
    parser.add_argument("--bin", type=pathlib.Path, default=convergence.ROOT / "build/release/bin")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=400, help="inner steps of each worker")
    parser.add_argument("--inner-steps", type=int, default=20, help="H")
    parser.add_argument("--outer", default="0.8:0.6", help="outer learning rate and momentum")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--eval-batches", type=int, default=200)
    parser.add_argument("--recipes", default=",".join(RECIPES), help="names, separated by commas; fp32 is always there")
    parser.add_argument("--add", action="append", default=[], metavar="NAME=YAML", help="a recipe of one's own")
    parser.add_argument("--out", type=pathlib.Path, default=None)
    args = parser.parse_args()
    args.outer = [float(x) for x in args.outer.split(":")]
    recipes = dict(RECIPES)
    wanted = args.recipes.split(",")
    for extra in args.add:
        name, _, yaml = extra.partition("=")
        recipes[name] = yaml
        wanted.append(name)
    for name in wanted:
        if name not in recipes and name not in TORCH:
            parser.error(f"no recipe '{name}'; there are {', '.join([*recipes, *TORCH])}")
    wanted = ["fp32"] + [name for name in wanted if name != "fp32"]
    results = json.loads(args.out.read_text()) if args.out and args.out.exists() else {}
    for seed in args.seeds.split(","):
        for name in wanted:
            if seed in results.get(name, {}):
                continue
            print(f"{name}, seed {seed} ...", file=sys.stderr, flush=True)
            result = run(args, name, recipes.get(name, "") + "\n", int(seed))
            print(f"  loss {result['loss']:.4f} in {result['seconds']:.0f} s", file=sys.stderr, flush=True)
            results.setdefault(name, {})[seed] = result
            if args.out:
                args.out.write_text(json.dumps(results, indent=1))
    print(report(results, args))


if __name__ == "__main__":
    main()
