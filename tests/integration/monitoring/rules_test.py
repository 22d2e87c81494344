#!/usr/bin/env python3
"""The alerts: rules_test.py REPOSITORY. Real promtool says that they fire and stay quiet as prometheus/tests/ has it; besides,
each is complete, asks for metrics that exist, names a section of docs/guides/alerts.md that is about it, and has a test of both kinds;
and what k8s/ has of them is the same.
Exit code 77: promtool or python3-yaml is not installed."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import metric_names

try:
    import yaml
except ImportError:
    print("skipped: python3 lacks yaml (scripts/setup.sh installs python3-yaml)")
    sys.exit(77)

SEVERITIES = {"critical", "warning", "info"}
REQUIRED = {"CoordinatorDown", "RoundStalled", "LowQuorum", "WorkerLost", "WorkerFlapping", "NonFinite", "LossDiverging",
            "LateContributions", "CommitSlow", "DiskNearlyFull", "ReplicaDiverged", "CertificateExpiring", "BackupStale",
            "LauncherFailing", "InsecureBind",
            "WorkerOffending", "WorkerBannedByRule", "CallersRefused", "HandshakesFailing", "PortUnderAttack", "PortFull"}


def sections(page):
    """anchor -> text, the anchor as GitHub makes it of the heading."""
    parts = re.split(r"(?m)^#+ (.*)$", page)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"): text for heading, text in zip(parts[1::2], parts[2::2])}


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
    section = sections((root / path).read_text()).get(anchor) if (root / path).is_file() else None
    if section is None or f"`{name}`" not in section:
        found.append(f"{name}: its runbook {notes.get('runbook_url')} is not there, or not about it")
    return found


def of_tests(names, tests):
    fires, quiet = set(), set()
    for path in tests:
        for case in yaml.safe_load(path.read_text())["tests"]:
            for check in case.get("alert_rule_test", []):
                (fires if check.get("exp_alerts") else quiet).add(check["alertname"])
    return [f"{name}: no test in which it {what}" for name in sorted(names)
            for what, having in (("fires", fires), ("stays quiet", quiet)) if name not in having]


def made(folder, *arguments):
    return subprocess.run([sys.executable, "-B", folder / "prometheus_rule.py", *arguments], capture_output=True, text=True,
                          check=True).stdout


def of_object(folder, groups):
    """The PrometheusRule has the same rules, but for where the runbooks are."""
    text = made(folder, "--runbooks", "https://git.example/")
    rule = yaml.safe_load(text.replace("https://git.example/docs", "docs"))
    same = rule["kind"] == "PrometheusRule" and rule["spec"]["groups"] == groups
    links = text.count("https://git.example/docs/") == sum("alert" in rule for group in groups for rule in group["rules"])
    return [] if same and links else ["prometheus_rule.py makes other rules than atoll.rules.yaml has"]


def of_kubernetes(folder, k8s):
    """What is there is what --write makes: that it renders to the same rules is a matter of tests/k8s."""
    files = ("components/monitoring/rules.yaml", "chart/rules.yaml")
    with tempfile.TemporaryDirectory() as fresh:
        for file in files:
            (pathlib.Path(fresh) / file).parent.mkdir(parents=True, exist_ok=True)
        made(folder, "--write", fresh)
        return [f"k8s/{file} is not what prometheus_rule.py makes: scripts/renew_monitoring.sh renews it" for file in files
                if (k8s / file).read_text() != (pathlib.Path(fresh) / file).read_text()]


def promtool(*arguments):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=280, check=False)
    return [] if done.returncode == 0 else [done.stdout + done.stderr]


def main():
    if shutil.which("promtool") is None:
        print("skipped: promtool is not installed (scripts/setup.sh installs prometheus)")
        return 77
    root = pathlib.Path(sys.argv[1])
    folder = root / "monitoring" / "prometheus"
    metrics = metric_names.documented((root / "docs" / "reference" / "metrics.md").read_text())
    groups = yaml.safe_load((folder / "atoll.rules.yaml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    recorded = {rule["record"]: {} for rule in rules if "record" in rule}
    alerts = {rule["alert"] for rule in rules if "alert" in rule}
    tests = sorted((folder / "tests").glob("*.yaml"))
    found = [f"{name}: there is no such alert" for name in sorted(REQUIRED - alerts)]
    for rule in rules:
        found += of_rule(rule, metrics, recorded, root)
    found += of_tests(alerts, tests) + of_object(folder, groups) + of_kubernetes(folder, root / "k8s")
    found += promtool("check", "rules", folder / "atoll.rules.yaml")
    found += promtool("check", "config", folder / "prometheus.yml")
    found += promtool("test", "rules", *tests)
    # That this program sees what it looks for.
    assert metric_names.problems('rate(atoll_no_such_total{a="b"}[5m])', metrics)
    assert metric_names.problems('atoll_workers{colour="red"}', metrics)
    assert metric_names.problems('sum(atoll_workers{state=~"lost|found"})', metrics)
    assert metric_names.problems('atoll_calls_refused_total{reason!="unauthorised"}', metrics)
    assert not metric_names.problems('rate(atoll_workers{state=~"lost|active_.*", instance="}"}[5m])', metrics)
    assert of_rule({"alert": "A", "expr": "up", "annotations": {"runbook_url": "docs/guides/alerts.md#nowhere"}}, metrics, {}, root)
    assert any("not about it" in text for text in of_rule(
        {"alert": "A", "expr": "up", "annotations": {"runbook_url": "docs/guides/alerts.md#a-round-waits"}}, metrics, {}, root))
    print("\n".join(found) or f"{len(alerts)} alerts are complete, fire and stay quiet")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
