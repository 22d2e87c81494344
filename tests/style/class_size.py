#!/usr/bin/env python3
"""Fails when a class is too large: more than 25 public methods, or methods defined in more than one header and one .cc.

Usage: class_size.py [ROOT]. Prints one line for each violation; exit code 1 when there is one.

Every public function that a class declares counts, each overload and static function once. These do not count:
constructors, the destructor, assignment, defaulted and deleted functions, and overrides, which count in the interface.
A class has the file that declares it and the .cc file of the same name; a method defined in another file is a violation.
"""
import pathlib
import re
import sys

FOLDERS = ["common", "core", "tokenizer", "storage", "protos", "monitoring", "server", "client", "worker", "cli", "simulate"]
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
MAX_PUBLIC_METHODS = 25

# Classes that may break the rule for now. The list may only shrink: an entry that keeps the rule fails too.
KNOWN = set()

# Headers with two implementations: that of the machine, and that of a simulation. A program links one of the two.
LINKED = {header: ("common/native_threads.cc", "simulate/fiber_threads.cc")
          for header in ("common/mutex.h", "common/thread.h")}
LINKED |= {f"common/{name}.h": (f"common/{name}.cc", "simulate/memory_files.cc")
           for name in ("durable_file", "file_lock", "mapped_file")}

NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\n|[^\n])*|R"([^(\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL | re.MULTILINE)
TOKEN = re.compile(r"[{};]|(?<!:)\b(public|protected|private)\s*:(?!:)")
HEAD = re.compile(r"\b(class|struct|union)\s+(?:alignas\([^)]*\)\s*)?((?:\w+::)*\w+)(?:\s+final)?\s*(?::(?!:).*)?$", re.DOTALL)
NO_FUNCTION = re.compile(r"\s*(using|typedef|friend|static_assert|enum|namespace|extern|return|goto)\b")
OPERATOR = re.compile(r"((?:\w+::)*)(operator\s*(?:\(\)|\[\]|[^\s\w(]+|[\w:&*\s]+))\s*\(")
FUNCTION = re.compile(r"((?:\w+::)*)(~?\w+)\s*\(")


def masked(text):
    """The text without comments, strings and preprocessor lines; every line keeps its number."""
    return NOISE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def without_brackets(text):
    """Drops balanced <...>: template arguments have parentheses and commas of their own."""
    text = re.sub(r"operator\s*(<=>|<<|>>|<=|>=|->|<|>)", lambda m: "operator" + "@" * len(m.group(1)), text)
    while True:
        shorter = re.sub(r"<[^<>{};]*>", "", text)
        if shorter == text:
            return text
        text = shorter


def function_of(statement):
    """(qualifiers, name) of the function that a statement declares or defines, or None."""
    if NO_FUNCTION.match(statement):
        return None
    text = without_brackets(re.sub(r"(?<!operator)\[[^\[\]]*\]|\[\[.*?\]\]", "", statement))
    text = re.sub(r"\b(ABSL|ATOLL)_\w+\s*(\([^()]*\))?|\balignas\([^()]*\)|\b(decltype|noexcept|explicit|requires)\s*\([^()]*\)", "", text)
    found = [m for m in (OPERATOR.search(text), FUNCTION.search(text)) if m]
    if not found:
        return None
    match = min(found, key=lambda m: m.start())
    before = text[:match.start()]
    if "=" in before or "(" in before or "," in before or match.group(2) in ("if", "for", "while", "switch", "catch"):
        return None
    return [q for q in match.group(1).split("::") if q], match.group(2).strip()


class Class:
    def __init__(self, name, path, line):
        self.name = name  # with the names of the classes around it: Outer::Inner
        self.path = path
        self.line = line
        self.public = []
        self.elsewhere = set()  # files other than `path` that define a method


def counts(name, owner, statement):
    plain = owner.split("::")[-1]
    return (name not in (plain, "~" + plain, "operator=") and
            not re.search(r"=\s*(default|delete)\s*$|\)[^()]*\b(override|final)\b", statement.strip()))


def parse(path, text):
    """The classes that a file defines, and the methods that it defines outside of their class, as [qualifiers]."""
    classes, outside = [], []
    code = masked(text)
    # Of ["namespace", None, None], ["class", Class, access] and ["block", None, where the statement around it began].
    stack = []
    start = 0
    for token in TOKEN.finditer(code):
        in_block = bool(stack) and stack[-1][0] == "block"
        statement = code[start:token.start()]
        sign = token.group()
        if sign == "}":
            kept = stack.pop()[2] if stack else None
            start = kept if isinstance(kept, int) else token.end()
            continue
        if sign not in "{;":
            if stack and stack[-1][0] == "class":
                stack[-1][2] = token.group(1)
                start = token.end()
            continue
        if in_block:
            if sign == "{":
                stack.append(["block", None, None])
            start = token.end()
            continue
        if statement.count("(") > statement.count(")"):  # a brace or a ';' within the arguments
            if sign == "{":
                stack.append(["block", None, start])
            continue
        bare = without_brackets(re.sub(r"\b(ABSL|ATOLL)_[A-Z_]+\s*(\([^()]*\))?", "", statement))
        head = HEAD.search(bare) if sign == "{" and not re.match(r"\s*enum\b", bare) and "(" not in bare else None
        if head:
            around = [s[1].name for s in stack if s[0] == "class"]
            name = "::".join(around[-1:] + [head.group(2)])
            stack.append(["class", Class(name, path, code.count("\n", 0, token.start()) + 1),
                          "private" if head.group(1) == "class" else "public"])
            classes.append(stack[-1][1])
        elif sign == "{" and re.match(r"\s*(inline\s+)?namespace\b|\s*extern\s*$", bare):
            stack.append(["namespace", None, None])
        else:
            function = function_of(statement)
            if function and stack and stack[-1][0] == "class":
                owner = stack[-1][1]
                if stack[-1][2] == "public" and counts(function[1], owner.name, statement):
                    owner.public.append(function[1])
            elif function and function[0] and sign == "{":
                outside.append(function[0])
            if sign == "{":
                stack.append(["block", None, None])
        start = token.end()
    return classes, outside


def stem(path):
    return path.rsplit(".", 1)[0]


def owner_of(qualifiers, path, by_name, included):
    """The class that qualifiers name in a file: one of the file itself, else of a header that it includes, else any."""
    for first in range(len(qualifiers)):
        found = by_name.get("::".join(qualifiers[first:]), [])
        for near in ([c for c in found if c.path == path], [c for c in found if c.path in included],
                     [c for c in found if c.path.endswith((".h", ".cuh"))]):
            if near:
                return near[0]
    return None


def check(files):
    """`files`: {path: text}. Returns {name of the class: [violation]}."""
    classes, outside = [], []
    for path, text in files.items():
        its_classes, its_outside = parse(path, text)
        classes += its_classes
        included = set(re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.MULTILINE))
        outside += [(path, included, qualifiers) for qualifiers in its_outside]
    by_name = {}
    for one in classes:
        by_name.setdefault(one.name, []).append(one)
    for path, included, qualifiers in outside:
        owner = owner_of(qualifiers, path, by_name, included)
        if owner and path != owner.path and path not in LINKED.get(owner.path, ()):
            owner.elsewhere.add(path)
    found = {}
    for one in classes:
        if len(one.public) > MAX_PUBLIC_METHODS:
            found.setdefault(one.name, []).append(
                f"{one.path}:{one.line}: {one.name} has {len(one.public)} public methods (at most {MAX_PUBLIC_METHODS})")
        strange = sorted(p for p in one.elsewhere if stem(p) != stem(one.path))
        if strange:
            found.setdefault(one.name, []).append(
                f"{one.path}:{one.line}: methods of {one.name} are defined in {', '.join(strange)};"
                f" only {stem(one.path)}.cc may")
    return found


def violations_of(found, known):
    """What fails: classes that are too large and not known, and known ones that are no longer too large."""
    violations = [line for name in sorted(found) if name not in known for line in found[name]]
    return violations + [f"{name}: keeps the rule now; take it out of KNOWN" for name in sorted(known) if name not in found]


def source_files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    files = {p.relative_to(root).as_posix(): p.read_text(encoding="utf-8") for p in source_files(root)}
    violations = violations_of(check(files), KNOWN)
    for violation in violations:
        print(violation)
    print(f"{len(files)} files, {len(violations)} violations, {len(KNOWN)} known large classes")
    return 1 if violations or not files else 0


if __name__ == "__main__":
    sys.exit(main())
