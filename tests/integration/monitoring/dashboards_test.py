#!/usr/bin/env python3
"""The dashboards as files: dashboards_test.py REPOSITORY. They are what dashboards.py makes; ids are unique, panels fill the
grid without overlaps, every panel and variable asks the chosen data source, has a description and a unit; every query asks for
metrics and labels that exist, and real promtool can parse it (skipped without it)."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import metric_names
from queries import expressions, substituted

BOARDS = ("run", "workers", "coordinator", "storage")
KINDS = {"timeseries", "stat", "gauge", "heatmap", "table", "xychart"}


def cells(panel):
    place = panel["gridPos"]
    return {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}


def of_panel(panel):
    if panel["type"] == "row":
        return []
    found = [f"no {key}" for key in ("title", "description") if not panel.get(key)]
    if panel["type"] not in KINDS:
        found.append(f"{panel['type']} is no kind of panel that we know")
    if not panel["fieldConfig"]["defaults"].get("unit"):
        found.append("no unit")
    steps = [step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]
    if steps[0] is not None or steps[1:] != sorted(steps[1:]):
        found.append(f"thresholds {steps} do not ascend from null")
    sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
    if any(source != {"type": "prometheus", "uid": "${datasource}"} for source in sources):
        found.append("does not ask the chosen data source")
    references = [target["refId"] for target in panel["targets"]]
    if not references or len(set(references)) != len(references):
        found.append(f"references {references}")
    return found


def of_board(board):
    found = []
    ids = [panel["id"] for panel in board["panels"]]
    if len(set(ids)) != len(ids):
        found.append("panels share an id")
    taken = set()
    for panel in board["panels"]:
        mine = cells(panel)
        if taken & mine or max(x for x, _ in mine) >= 24:
            found.append(f"{panel['title']}: lies over another, or outside")
        taken |= mine
        found += [f"{panel['title']}: {problem}" for problem in of_panel(panel)]
    names = {variable["name"] for variable in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(board))) - {"__rate_interval", "__all"}
    if used - names:
        found.append(f"asks for variables {sorted(used - names)}, which it has not")
    if not any(link["type"] == "dashboards" and link["tags"] == board["tags"] for link in board["links"]):
        found.append("no links to the others")
    return found


def parses(all_expressions):
    """As recording rules, which promtool parses."""
    if shutil.which("promtool") is None:
        return []
    lines = [f"      - {{record: 'a:b{i}', expr: {json.dumps(expr)}}}" for i, expr in enumerate(all_expressions)]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("groups:\n  - name: queries\n    rules:\n" + "\n".join(lines) + "\n")
        file.flush()
        done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [done.stdout + done.stderr]


def main():
    root = pathlib.Path(sys.argv[1])
    folder = root / "monitoring" / "grafana"
    metrics = metric_names.documented((root / "docs" / "reference" / "metrics.md").read_text())
    found, boards = [], {}
    with tempfile.TemporaryDirectory() as fresh:
        subprocess.run([sys.executable, "-B", folder / "dashboards.py", fresh], check=True)
        for name in BOARDS:
            text = (folder / "dashboards" / f"{name}.json").read_text()
            if text != (pathlib.Path(fresh) / f"{name}.json").read_text():
                found.append(f"{name}.json is not what dashboards.py makes: scripts/renew_monitoring.sh renews it")
            boards[name] = json.loads(text)
    if len({board["uid"] for board in boards.values()}) != len(boards):
        found.append("dashboards share a uid")
    asked = []
    for name, board in boards.items():
        found += [f"{name}: {problem}" for problem in of_board(board)]
        for title, expr in expressions(board):
            asked.append(substituted(expr))
            found += [f"{name}: {title}: {problem}" for problem in metric_names.problems(substituted(expr), metrics)]
    found += parses(asked)
    assert shutil.which("promtool") is None or parses(["sum(up"]), "promtool takes anything"
    print("\n".join(found) or f"{len(boards)} dashboards, {len(asked)} queries: consistent, and of metrics that exist")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
