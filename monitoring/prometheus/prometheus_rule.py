#!/usr/bin/env python3
"""atoll.rules.yaml as a PrometheusRule of the Prometheus operator, on standard output.

prometheus_rule.py [--name atoll] [--namespace NS] [--runbooks https://git.example/atoll/blob/main/]
--runbooks is put before each runbook link, which is a path in this repository.
"""
import argparse
import pathlib
import re

RULES = pathlib.Path(__file__).parent / "atoll.rules.yaml"
LABELS = ("app.kubernetes.io/name: atoll", "app.kubernetes.io/part-of: atoll")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="atoll")
    parser.add_argument("--namespace")
    parser.add_argument("--runbooks", default="")
    options = parser.parse_args()
    # As text, so that it needs nothing but Python: the object's spec is the file, indented.
    rules = "".join(line for line in RULES.read_text().splitlines(True) if not line.startswith("#"))
    rules = re.sub(r"(?m)^( *runbook_url: )", lambda match: match[1] + options.runbooks, rules)
    print("# Made by monitoring/prometheus/prometheus_rule.py from atoll.rules.yaml.")
    print("apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:")
    print(f"  name: {options.name}")
    if options.namespace:
        print(f"  namespace: {options.namespace}")
    print("  labels:\n" + "\n".join(f"    {label}" for label in LABELS))
    print("spec:\n" + "".join("  " + line if line.strip() else line for line in rules.splitlines(True)), end="")


if __name__ == "__main__":
    main()
