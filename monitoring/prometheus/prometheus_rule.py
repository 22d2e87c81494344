#!/usr/bin/env python3
"""atoll.rules.yaml as a PrometheusRule of the Prometheus operator, on standard output.

prometheus_rule.py [--name atoll] [--namespace NS] [--runbooks https://git.example/atoll/blob/main/]
prometheus_rule.py --write [FOLDER]    renews the copies in k8s/ (or FOLDER): the object of the component `monitoring`,
                                       and the rules that the Helm chart puts into one
--runbooks is put before each runbook link, which is a path in this repository.
"""
import argparse
import pathlib
import re

HERE = pathlib.Path(__file__).parent
RULES = HERE / "atoll.rules.yaml"
K8S = HERE.parents[1] / "k8s"
LABELS = {"name": "atoll", "instance": "atoll", "component": "coordinator", "part-of": "atoll"}
HEAD = "# Made by monitoring/prometheus/prometheus_rule.py from atoll.rules.yaml.\n"


def rules():
    """As text, so that it needs nothing but Python."""
    return "".join(line for line in RULES.read_text().splitlines(True) if not line.startswith("#"))


def prometheus_rule(name="atoll", namespace=None, runbooks=""):
    spec = re.sub(r"(?m)^( *runbook_url: )", lambda match: match[1] + runbooks, rules())
    place = f"  namespace: {namespace}\n" if namespace else ""
    labels = "".join(f"    app.kubernetes.io/{label}: {value}\n" for label, value in LABELS.items())
    return (f"{HEAD}apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: {name}\n{place}"
            f"  labels:\n{labels}spec:\n" +
            "".join("  " + line if line.strip() else line for line in spec.splitlines(True)))


def of_kubernetes():
    """path in k8s/ -> text"""
    return {"components/monitoring/rules.yaml": prometheus_rule(), "chart/rules.yaml": HEAD + rules()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="atoll")
    parser.add_argument("--namespace")
    parser.add_argument("--runbooks", default="")
    parser.add_argument("--write", nargs="?", const=K8S, type=pathlib.Path)
    options = parser.parse_args()
    if options.write is None:
        print(prometheus_rule(options.name, options.namespace, options.runbooks), end="")
        return
    for path, text in of_kubernetes().items():
        (options.write / path).write_text(text)


if __name__ == "__main__":
    main()
