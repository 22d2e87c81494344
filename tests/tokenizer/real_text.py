#!/usr/bin/env python3
"""Collects real text from the files of this machine: documentation, man pages in many languages, sources, messages.

Usage: real_text.py --bytes N FILE
"""
import argparse
import gzip
import pathlib

# Folders, what to take from each, and its share of the text.
SOURCES = (
    ("/usr/share/doc", ("*.gz", "*.txt", "*.html", "*.md", "README*", "copyright", "NEWS*"), 0.30),
    ("/usr/share/man", ("*.gz",), 0.25),
    ("/usr/lib", ("*.py", "*.js", "*.json"), 0.20),
    ("/usr/share", ("*.po", "*.mo", "*.xml", "*.desktop", "*.pl", "*.txt"), 0.15),
    ("/usr/include", ("*.h", "*.hpp"), 1.0),
)
MOST = 2_000_000  # of one file


def text_of(path):
    """The text of a file; empty: none, or not UTF-8."""
    try:
        data = gzip.open(path).read(MOST) if path.suffix == ".gz" else path.read_bytes()[:MOST]
    except (OSError, EOFError):
        return ""
    if path.suffix == ".mo":  # compiled messages: strings with zeros between them
        return "\n".join(part.decode("utf-8", "ignore") for part in data.split(b"\0") if len(part) > 8)
    if b"\0" in data:
        return ""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("utf-8", "ignore") if len(data) == MOST else ""


def collect(most):
    """Real text of at most `most` bytes; less where the machine has less."""
    parts, size, seen = [], 0, set()
    for folder, patterns, share in SOURCES:
        end = min(most, size + int(most * share))
        files = sorted({path for pattern in patterns for path in pathlib.Path(folder).rglob(pattern)})
        # Every so many files, so that a small text is not of one package.
        step = max(1, len(files) // max(1, int(most * share / 20_000)))
        for first in range(step):
            for path in files[first::step]:
                if size >= end:
                    break
                key = path.resolve()
                if key in seen or not path.is_file():
                    continue
                seen.add(key)
                part = text_of(path)[: max(0, (end - size))]
                size += len(part.encode())
                parts.append(part)
    return "\n".join(parts).encode()[:most].decode("utf-8", "ignore")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.file.write_text(collect(arguments.bytes), encoding="utf-8")


if __name__ == "__main__":
    main()
