#!/usr/bin/env python3
"""The alerts: rules_test.py REPOSITORY. Real promtool says that they fire and stay quiet as prometheus/tests/ has it; besides,
each is complete, asks for metrics that exist, names a section of docs/operations.md that exists, and has a test of both kinds.
Exit code 77: promtool or python3-yaml is not installed."""
import pathlib
import re
import shutil
import subprocess
import sys

import metric_names

try:
    import yaml
except ImportError:
    print("skipped: python3 lacks yaml (scripts/setup.sh installs python3-yaml)")
    sys.exit(77)

SEVERITIES = {"critical", "warning", "info"}
REQUIRED = {"CoordinatorDown", "RoundStalled", "LowQuorum", "WorkerLost", "WorkerFlapping", "NonFinite", "LossDiverging",
            "LateContributions", "CommitSlow", "DiskNearlyFull", "ReplicaDiverged", "CertificateExpiring", "BackupStale"}


def anchors(page):
    """Of its headings, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.*)$", page)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def of_rule(rule, metrics, recorded, root):
    name = rule.get("alert", rule.get("record"))
    found = [f"{name}: {problem}" for problem in metric_names.problems(rule["expr"], {**metrics, **recorded})]
    if "record" in rule:
        return found
    if rule.get("labels", {}).get("severity") not in SEVERITIES:
        found.append(f"{name}: severity is none of {sorted(SEVERITIES)}")
    notes = rule.get("annotations", {})
    found += [f"{name}: no {key}" for key in ("summary", "description", "runbook_url") if not notes.get(key)]
    path, _, anchor = notes.get("runbook_url", "").partition("#")
    if not (root / path).is_file() or anchor not in anchors((root / path).read_text()):
        found.append(f"{name}: its runbook {notes.get('runbook_url')} is not there")
    return found


def of_tests(names, tests):
    fires, quiet = set(), set()
    for path in tests:
        for case in yaml.safe_load(path.read_text())["tests"]:
            for check in case.get("alert_rule_test", []):
                (fires if check.get("exp_alerts") else quiet).add(check["alertname"])
    return [f"{name}: no test in which it {what}" for name in sorted(names)
            for what, having in (("fires", fires), ("stays quiet", quiet)) if name not in having]


def of_object(folder, groups):
    """The PrometheusRule has the same rules, but for where the runbooks are."""
    made = subprocess.run([sys.executable, "-B", folder / "prometheus_rule.py", "--runbooks", "https://git.example/"],
                          capture_output=True, text=True, check=True).stdout
    rule = yaml.safe_load(made.replace("https://git.example/docs", "docs"))
    same = rule["kind"] == "PrometheusRule" and rule["spec"]["groups"] == groups
    links = made.count("https://git.example/docs/") == sum("alert" in rule for group in groups for rule in group["rules"])
    return [] if same and links else ["prometheus_rule.py makes other rules than atoll.rules.yaml has"]


def promtool(*arguments):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=280, check=False)
    return [] if done.returncode == 0 else [done.stdout + done.stderr]


def main():
    if shutil.which("promtool") is None:
        print("skipped: promtool is not installed (scripts/setup.sh installs prometheus)")
        return 77
    root = pathlib.Path(sys.argv[1])
    folder = root / "monitoring" / "prometheus"
    metrics = metric_names.documented((root / "docs" / "metrics.md").read_text())
    groups = yaml.safe_load((folder / "atoll.rules.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    recorded = {rule["record"]: set() for rule in rules if "record" in rule}
    alerts = {rule["alert"] for rule in rules if "alert" in rule}
    tests = sorted((folder / "tests").glob("*.yaml"))
    found = [f"{name}: there is no such alert" for name in sorted(REQUIRED - alerts)]
    for rule in rules:
        found += of_rule(rule, metrics, recorded, root)
    found += of_tests(alerts, tests) + of_object(folder, groups)
    found += promtool("check", "rules", folder / "atoll.rules.yaml")
    found += promtool("check", "config", folder / "prometheus.yml")
    found += promtool("test", "rules", *tests)
    # That this program sees what it looks for.
    assert metric_names.problems('rate(atoll_no_such_total{a="b"}[5m])', metrics)
    assert metric_names.problems('atoll_workers{colour="red"}', metrics)
    assert of_rule({"alert": "A", "expr": "up", "annotations": {"runbook_url": "docs/operations.md#nowhere"}}, metrics, {}, root)
    print("\n".join(found) or f"{len(alerts)} alerts are complete, fire and stay quiet")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
