#!/usr/bin/env python3
"""Images, the chart, the manifests and the Python package name the version of CMakeLists.txt and no other; CHANGELOG.md begins
with it.

Usage: versions_test.py [ROOT]. Prints one line for each other version; exit code 1 when there is one.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
FOLDERS = ("k8s", "tests/golden/k8s", "tests/k8s")
RELEASE = r"(\d+\.\d+\.\d+)\b"
NAMED = (
    re.compile(r"\batoll/(?:coordinator|worker-cpu|worker-cuda):" + RELEASE),
    re.compile(r"\bnewTag: \"?" + RELEASE),
    re.compile(r"^(?:version|appVersion): \"?" + RELEASE, re.M),
    re.compile(r"^ARG VERSION=" + RELEASE, re.M),
    re.compile(r"[?/](?:ref=|blob/)v" + RELEASE),
)


def complaints(version):
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if not path.is_file() or path.suffix in (".binpb", ".pyc"):
                continue
            text = path.read_text(errors="replace")
            for pattern in NAMED:
                for match in pattern.finditer(text):
                    if match.group(1) != version:
                        line = text.count("\n", 0, match.start()) + 1
                        yield f"{path.relative_to(ROOT)}:{line}: '{match.group(0)}'; the version is {version}"
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    if first is None or first.group(1) != version:
        yield f"CHANGELOG.md: the newest entry is not {version}"
    python = ROOT / "python/atoll/_version.py"
    named = re.findall(r"^__version__ = \"(.*)\"$", python.read_text(), re.M)
    if named != [version]:
        yield f"{python.relative_to(ROOT)}: names {named or 'no version'}; the version is {version}"


def main():
    version = re.search(r"^project\(atoll VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)
    found = list(complaints(version))
    print("\n".join(found) if found else f"everything names {version}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
