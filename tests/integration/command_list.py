"""Which commands atollctl has, and which of them a test has given."""
import re
import subprocess


def commands(program, path=()):
    """Every command without subcommands, as --help lists them."""
    text = subprocess.run([program, *path, "--help"], capture_output=True, text=True, timeout=30, check=True).stdout
    below = re.search(r"^Subcommands:\n((?: .*\n)+)", text, re.M)
    if not below:
        return {path}
    names = re.findall(r"^ {2}([a-z-]+)", below.group(1), re.M)
    return set().union(*(commands(program, (*path, name)) for name in names))


class Given:
    """Commands by their words, without options and operands."""

    def __init__(self):
        self.paths = set()

    def note(self, arguments):
        words = []
        for argument in map(str, arguments):
            if not re.fullmatch(r"[a-z-]+", argument) or argument.startswith("-"):
                break
            words.append(argument)
        for size in range(len(words), 0, -1):
            self.paths.add(tuple(words[:size]))

    def missing(self, program):
        return [" ".join(path) for path in sorted(commands(program)) if path not in self.paths]
