#!/usr/bin/env python3
"""Fails when the build forces a macro on files that do not ask for it, or when a macro renames a symbol.

Usage: forced_macros.py [ROOT] [compile_commands.json]. Prints one line for each violation; exit code 1 when there is one.

A name that means one thing in the source and another in the compiler cannot be searched for, and it changes foreign
headers too. The C++ namespace of generated messages is renamed by a build step instead (cmake/RenameNamespace.cmake).
"""
import collections
import json
import pathlib
import re
import shlex
import sys

CODE_FOLDERS = ["bench", "cli", "client", "common", "core", "monitoring", "protos", "python", "server", "simulate", "storage", "tokenizer",
                "tests", "worker"]
CODE_SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
BUILD_FOLDERS = CODE_FOLDERS + ["cmake"]

# In the files of the build. `option` is where a macro could be written as a compiler's option.
FORCES_ALL = re.compile(r"\b(add_compile_definitions|add_definitions)\s*\(|\bCOMPILE_DEFINITIONS\b")
FORCES_USERS = re.compile(r"\btarget_compile_definitions\s*\(\s*\S+\s+(?:[^)]*\s)?(PUBLIC|INTERFACE)\b")
AS_OPTION = re.compile(r"(?<![\w-])-(?:include|imacros)\b(?!_)|(?<![\w-])-D\s*[A-Za-z_]\w*")
OPTIONS = re.compile(r"(?:\b(?:add_compile_options|target_compile_options)\s*\([^)]*\)|CMAKE_C(?:XX)?_FLAGS\w*\"?\s*[:\s][^)\n,]*)")
RENAMES = re.compile(r"\btarget_compile_definitions\s*\([^)]*?\s\"?([A-Za-z_]\w*=[A-Za-z_][\w:]*)")

# In the sources: a macro of ours has our prefix, so it cannot have the name of anything else.
DEFINE = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)

# The compiler's own switches, which the build type sets for every file.
EVERYWHERE = {"NDEBUG"}


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def check_build_file(path, text):
    found = []
    text = re.sub(r"#[^\n]*", "", text) if not path.endswith(".json") else text
    for pattern, reason in [(FORCES_ALL, "a definition for every target after it; use target_compile_definitions(... PRIVATE ...)"),
                            (FORCES_USERS, "a definition for every user of the target; make it PRIVATE"),
                            (RENAMES, "a macro that renames a symbol")]:
        found += [f"{path}:{line_of(text, m)}: {reason}" for m in pattern.finditer(text)]
    for options in OPTIONS.finditer(text):
        if AS_OPTION.search(options.group()):
            found.append(f"{path}:{line_of(text, options)}: a macro or a header forced by a compiler's option")
    return found


def check_source(path, text):
    return [f"{path}:{line_of(text, m)}: macro {m.group(1)}: the names of our macros begin with ATOLL_"
            for m in DEFINE.finditer(text) if not m.group(1).startswith("ATOLL_")]


def check_commands(commands):
    """What the compiler is really told: `commands` are its command lines, as lists."""
    found = set()
    counted = collections.Counter()
    for words in commands:
        here = set()
        for at, word in enumerate(words):
            following = words[at + 1] if at + 1 < len(words) else ""
            if word in ("-include", "-imacros") and not pathlib.Path(following).name.startswith("cmake_pch."):
                found.add(f"{word} {following}: a forced header")
            if word.startswith("-D"):
                here.add((word[2:] or following))
        counted.update(here)
    for definition, times in counted.items():
        name, _, value = definition.partition("=")
        if re.fullmatch(r"[A-Za-z_][\w:]*", value):
            found.add(f"-D{definition}: a macro that renames a symbol")
        if times == len(commands) and name not in EVERYWHERE:
            found.add(f"-D{definition}: forced on every file")
    return sorted(found)


def files_of(root):
    """(name, path, is a file of the build) of all files that are judged."""
    for path in sorted(root.glob("CMake*")):
        if path.suffix in (".txt", ".json"):
            yield path.name, path, True
    for folder in BUILD_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.name == "CMakeLists.txt" or path.suffix == ".cmake":
                yield name, path, True
            elif path.suffix in CODE_SUFFIXES or path.name.endswith(".h.in"):
                yield name, path, False


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    violations = []
    count = 0
    for name, path, of_build in files_of(root):
        count += 1
        violations += (check_build_file if of_build else check_source)(name, path.read_text(encoding="utf-8"))
    commands = []
    if len(sys.argv) > 2:
        commands = [shlex.split(entry["command"]) for entry in json.loads(pathlib.Path(sys.argv[2]).read_text())]
        violations += check_commands(commands) if commands else [f"{sys.argv[2]}: empty"]
    for violation in violations:
        print(violation)
    print(f"{count} files, {len(commands)} compiler commands, {len(violations)} violations")
    return 1 if violations or not count else 0


if __name__ == "__main__":
    sys.exit(main())
