#!/usr/bin/env python3
"""docs/reference/configuration.md lists the fields that the coordinator lets an operator set, all of them and no other."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    source = (ROOT / "server/run/config_history.cc").read_text()
    allowed = set(re.findall(r'"([a-z0-9_.]+)"', re.search(r"kChangeable = .*?\}\);", source, re.S).group(0)))
    page = (ROOT / "docs/reference/configuration.md").read_text()
    section = page.split("## What may be set while the run goes on", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `([a-z_.]+)` \| (.*) \|$", section, re.M)
    listed = {f"{group}.{name}" for group, names in rows for name in re.findall(r"`([a-z0-9_]+)`", names)}
    for field in sorted(allowed ^ listed):
        print(f"{field} is in {'server/run/config_history.cc' if field in allowed else 'docs/reference/configuration.md'} only")
    sys.exit(allowed != listed or not allowed)


if __name__ == "__main__":
    main()
