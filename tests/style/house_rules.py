#!/usr/bin/env python3
"""Fails when a file breaks a rule of the house that a machine can see (CONTRIBUTING.md lists them).

Usage: house_rules.py [ROOT]. Prints one line for each violation; exit code 1 when there is one.
"""
import pathlib
import re
import statistics
import sys

CODE_FOLDERS = ["common", "core", "tokenizer", "storage", "protos", "monitoring", "server", "client", "worker", "cli"]
CODE_SUFFIXES = {".h", ".hpp", ".cc", ".cu", ".cuh"}
TEXT_SUFFIXES = CODE_SUFFIXES | {".md", ".py", ".sh", ".cmake", ".txt", ".json", ".yaml", ".yml", ".proto"}
TEXT_FOLDERS = CODE_FOLDERS + ["simulate", "tests", "bench", "scripts", "cmake", "docs", "k8s", "examples", "python", ".ci"]

MAX_FILE_LINES = 600
MAX_90_PERCENT_LINES = 400
MAX_MEDIAN_LINES = 120
MAX_FUNCTION_LINES = 60

# Written so that this file does not contain what it looks for.
MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:work|home)" + r"/\w")
OPENS_NO_FUNCTION = re.compile(r"^(namespace|class|struct|enum|union|extern|constexpr|static const|const|inline const|template)\b")
SHELL = re.compile(r"#!.*\b(?:ba|da)?sh\b")
TRAPS = re.compile(r"^set -Eeuo pipefail\n(?:.*\n)*?(?:source|\.) .*\blib\.sh\"?$", re.MULTILINE)
CHANNEL = re.compile(r"\bgrpc::(?:experimental::)?Create(?:Custom|Insecure)?Channel\w*\(")
CHANNEL_MAKER = "protos/transport/client_channel.cc"
SOURCE_NAME = re.compile(r"`([\w.-]+/[\w./-]*\.(?:h|cc|cu|cuh|proto|py|sh|cmake|txt|yaml|json))`")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)\s]*)?\)")


def expected_guard(path):
    path = path.removeprefix("client/include/atoll/")  # of the public headers: as users include them
    return "ATOLL_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper() + "_"


def check_guard(path, text):
    guard = expected_guard(path)
    if f"#ifndef {guard}\n#define {guard}\n" in text and text.rstrip().endswith((f"#endif  // {guard}", f"#endif /* {guard} */")):
        return []
    return [f"{path}: header guard must be {guard}, closed by '#endif  // {guard}'"]


def check_functions(path, text):
    """A definition at namespace level starts in column 0 and ends at the next '}' in column 0 (clang-format's layout)."""
    found = []
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if start is None and re.match(r"[A-Za-z~]", line) and not OPENS_NO_FUNCTION.match(line) and "(" in line:
            start = number
        elif start is not None and line.startswith("}"):
            if number - start + 1 > MAX_FUNCTION_LINES:
                found.append(f"{path}:{start}: function of {number - start + 1} lines (at most {MAX_FUNCTION_LINES})")
            start = None
        if start is not None and line.rstrip().endswith(";") and not line.startswith((" ", "\t")):
            start = None  # a declaration
    return found


def check_code_file(path, text):
    found = []
    lines = text.count("\n")
    if lines > MAX_FILE_LINES:
        found.append(f"{path}: {lines} lines (at most {MAX_FILE_LINES})")
    if path.endswith((".h", ".hpp", ".cuh")):
        found += check_guard(path, text)
    if path.endswith((".cc", ".cu")):
        found += check_functions(path, text)
    return found + check_channels(path, text)


def check_channels(path, text):
    """A channel without the arguments of CreateClientChannel lets a server abort the program."""
    if path == CHANNEL_MAKER or not CHANNEL.search(text):
        return []
    return [f"{path}: makes a channel; only {CHANNEL_MAKER} may"]


def check_sizes(lengths):
    if not lengths:
        return ["no source files found"]
    found = []
    median = statistics.median(lengths)
    if median > MAX_MEDIAN_LINES:
        found.append(f"median file has {median:.0f} lines (at most {MAX_MEDIAN_LINES})")
    if len(lengths) >= 10:
        tail = statistics.quantiles(lengths, n=10)[-1]
        if tail > MAX_90_PERCENT_LINES:
            found.append(f"90 % of the files should have at most {MAX_90_PERCENT_LINES} lines; it is {tail:.0f}")
    return found


def check_text_file(path, text):
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if MACHINE_PATH.search(line):
            found.append(f"{path}:{number}: a path of one machine: {line.strip()[:80]}")
        if re.match(r"(<{7} |>{7} |={7}$)", line):
            found.append(f"{path}:{number}: merge conflict marker")
    return found


def check_script(path, text):
    """What fails in a script names itself: it sources scripts/lib.sh, which sets the ERR trap, or it only becomes another program."""
    if not SHELL.match(text) or TRAPS.search(text):
        return []
    commands = [line for line in text.splitlines() if line.strip() and not line.startswith(("#", "set ", "cd "))]
    if len(commands) == 1 and commands[0].startswith("exec "):
        return []
    return [f"{path}: 'set -Eeuo pipefail' and then 'source .../scripts/lib.sh' are missing, so that a failure does not name its line"]


def check_links(root, path, text):
    found = []
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        if in_code:
            continue
        for target, _ in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            if not ((root / path).parent / target).exists():
                found.append(f"{path}:{number}: link to {target}, which does not exist")
    return found


def check_source_names(root, path, text):
    """A page that names a source file in backticks names one that exists, so that a moved file moves in the pages too."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for name in SOURCE_NAME.findall(line):
            if name.split("/")[0] in TEXT_FOLDERS and not (root / name).exists():
                found.append(f"{path}:{number}: names {name}, which does not exist")
    return found


def text_files(root):
    yield from sorted(p for p in root.iterdir() if p.is_file() and p.suffix in TEXT_SUFFIXES)
    for folder in TEXT_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and (path.suffix in TEXT_SUFFIXES or path.name == "run"):
                if "__pycache__" not in path.parts and "node_modules" not in path.parts:
                    yield path


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    violations = []
    lengths = []
    for path in text_files(root):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        violations += check_text_file(name, text) + check_script(name, text)
        if path.suffix == ".md":
            violations += check_links(root, name, text) + check_source_names(root, name, text)
        if path.suffix in CODE_SUFFIXES and name.split("/")[0] in CODE_FOLDERS:
            lengths.append(text.count("\n"))
            violations += check_code_file(name, text)
    violations += check_sizes(lengths)
    for violation in violations:
        print(violation)
    if lengths:
        print(f"{len(lengths)} source files, median {statistics.median(lengths):.0f} lines, longest {max(lengths)}")
    print(f"{len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
