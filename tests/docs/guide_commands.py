#!/usr/bin/env python3
"""Runs the commands of the guides (docs/guides), as they stand there, with the real programs.

Usage: guide_commands.py --check | [--bin DIR] [--timeout SECONDS] [--keep] [GUIDE.md ...]

Without a name, all guides run, two at a time, but for those of a Python that not every machine has. A block is the text between ```sh and ```; its heading is the one above it.
guide_rules.py says which terminal runs the blocks of a heading, what a guide takes as given, and what the test substitutes in the text.
guides_elsewhere.txt lists the blocks that another test runs, or that no test can run, each with the reason.

  --check      every block has a rule or a line in guides_elsewhere.txt, every rule and line has a block, every block is valid bash,
               and no other form of code could hide a command: fences are `sh`, `text` and `yaml`, and nothing is indented by four
  --bin DIR    our programs (default: build/release/bin)
  --timeout N  seconds for one guide (default 600)
  --keep       keep the scratch folders

Each guide has namespaces of its own (unshare): network, so that default ports are free; mounts, so that host names and /srv are as the text
has them; processes, so that nothing is left running.
A block fails when one of its commands fails, and a page when a line in a ```text fence is not among what its commands print. Exit codes: 0 passed, 1 failed, 2 wrong usage, 77 a program is not built, or unshare or ip
does not work here.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import guide_rules
from page_blocks import ROOT, Failed, Terminal, blocks_of, outputs_of, syntax_problem

GUIDES = ROOT / "docs/guides"
ELSEWHERE = pathlib.Path(__file__).with_name("guides_elsewhere.txt")
PROGRAMS = ("atoll-coordinator", "atoll-worker", "atoll-model", "atollctl", "atoll-data")
ISOLATED = ("unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")


# ---- what is covered


def elsewhere_of(text):
    """{page: {heading: reason}} of the lines "PAGE | HEADING | REASON"."""
    found = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            parts = [part.strip() for part in line.split("|")]
            if len(parts) != 3 or not all(parts):
                raise Failed(f"guides_elsewhere.txt: not PAGE | HEADING | REASON: {line}")
            found.setdefault(parts[0], {})[parts[1]] = parts[2]
    return found


def hidden_code(text):
    """Lines that hold code in a form that blocks_of() does not see."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)(.*)$", line)
        if fence is not None:
            if line == "```":
                fence = None
        elif mark:
            fence = mark[2]
            if line not in ("```sh", "```text", "```yaml"):
                yield f"line {number}: a fence must be ```sh, ```text or ```yaml at the line's begin, not '{line.strip()}'"
        elif re.match(r"( {4}|\t)", line):
            yield f"line {number}: indented code; put it between ```sh and ```"


def check_page(name, text, rule, elsewhere):
    """What is wrong with a guide."""
    blocks = blocks_of(text)
    headings = {heading for heading, _ in blocks}
    covered = set(rule.headings if rule else ())
    yield from hidden_code(text)
    for heading in sorted(headings - covered - set(elsewhere)):
        yield f"no rule runs the block under '{heading}': add one to tests/docs/guide_rules.py"
    for heading in sorted((covered | set(elsewhere)) - headings):
        yield f"there is no block under '{heading}', which tests/docs names"
    for heading in sorted(covered & set(elsewhere)):
        yield f"'{heading}' has a rule, and stands in guides_elsewhere.txt too"
    for heading, block in blocks:
        if problem := syntax_problem(block):
            yield f"a block under '{heading}' is not valid bash: {problem}"


def check(guides, rules, elsewhere, only=()):
    pages = {path.name for path in guides.glob("*.md")}
    for name in sorted((set(rules) | set(elsewhere)) - pages):
        yield f"{name}: there is no such guide"
    for name in sorted(set(only) & pages or pages):
        for problem in check_page(name, (guides / name).read_text(), rules.get(name), elsewhere.get(name, {})):
            yield f"{name}: {problem}"


# ---- a guide is run


def interop_python():
    """The Python of the environment with Hugging Face's packages."""
    script = ROOT / "scripts/interop.sh"
    told = subprocess.run([script, "--python"], capture_output=True, text=True, check=True).stdout if script.exists() else ""
    return told.strip() or os.environ.get("ATOLL_INTEROP_PYTHON", "")


def checkout(folder, programs, rule, rounds):
    """A copy of what the guides use of the repository, with a small model in configs/small.yaml."""
    folder.mkdir(parents=True)
    for name in ("README.md", "docs", "scripts", "monitoring", "python"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "build/release").mkdir(parents=True)
    (folder / "build/release/bin").symlink_to(programs)
    (folder / "build/release/lib").symlink_to(programs.parent / "lib")
    (folder / "configs").mkdir()
    text = (ROOT / "configs/small.yaml").read_text()
    for pattern, replacement in guide_rules.SMALL:
        text, count = re.subn(pattern, replacement.format(rounds=rounds, steps=rule.steps), text)
        if count != 1:
            raise Failed(f"configs/small.yaml has {count} lines like {pattern}: correct SMALL in tests/docs/guide_rules.py")
    (folder / "configs/small.yaml").write_text(text)


class Story:
    """One guide, run from its first block to its last."""

    def __init__(self, folder, programs, rule, text, deadline):
        self.folder, self.programs, self.rule, self.text, self.deadline = folder, programs, rule, text, deadline
        self.terminals = {}
        (folder / "bin").mkdir()
        for name, shim in guide_rules.SHIMS.items():
            (folder / "bin" / name).write_text(shim.replace("{folder}", str(folder)))
            (folder / "bin" / name).chmod(0o755)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("ATOLL_")}
        first = {"system": "/usr/bin/python3", "interop": interop_python(), "": ""}[rule.python]
        self.environment["PATH"] = ":".join([f"{folder}/bin", *([os.path.dirname(first)] if first else []), os.environ["PATH"]])
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"  # python/ is that of the repository
        # Many processes share two cores here: threads that wait must not spin.
        self.environment.update({"OMP_WAIT_POLICY": "passive", "USER": self.environment.get("USER", "reader")})
        for machine in sorted({m for machines in rule.headings.values() for m in machines} | {"here"}):
            checkout(folder / "machines" / machine / "atoll", programs, rule, guide_rules.rounds_of(text))

    def terminal(self, machine):
        if machine not in self.terminals:
            home, apart = self.folder / "machines" / machine, machine in guide_rules.HOSTS and machine != guide_rules.HUB
            self.terminals[machine] = terminal = Terminal(home, self.environment, self.folder / f"{machine}.log",
                                                          ("unshare", "--net") if apart else ())
            if apart:
                connect(terminal.shell.pid, guide_rules.HOSTS[machine])
            if machine == "here":
                self.run(machine, "cd atoll\n")
        return self.terminals[machine]

    def run(self, machine, block):
        for text, replacement in guide_rules.SUBSTITUTIONS.get(machine, ()):
            block = block.replace(text, replacement)
        self.terminal(machine).run(block, self.deadline)

    def tell(self):
        if self.rule.given:
            self.run("here", self.rule.given)
        begun = set()
        for heading, block in blocks_of(self.text):
            if heading not in self.rule.headings:
                continue
            machines = self.rule.headings[heading] or ("here",)
            try:
                if heading in self.rule.before and heading not in begun:
                    self.run(machines[0], self.rule.before[heading])
                begun.add(heading)
                for machine in machines:
                    self.run(machine, block)
            except Failed as failure:
                raise Failed(f"under '{heading}':\n{block}{failure}") from None
            print(f"  {heading}", flush=True)
        self.check_outputs()

    def check_outputs(self):
        """The output that the page shows is what its commands print."""
        printed = {line for terminal in self.terminals.values() for line in terminal.printed()}
        for heading, line in outputs_of(self.text):
            if heading in self.rule.headings and line not in printed:
                raise Failed(f"under '{heading}': no command prints this line of the page:\n{line}\n")

    def close(self):
        for terminal in self.terminals.values():
            terminal.close()


def isolation_problem():
    """Why guides cannot have namespaces of their own here, or an empty text."""
    try:
        done = subprocess.run([*ISOLATED, "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    except FileNotFoundError:
        return "unshare is not installed (scripts/setup.sh)"
    return "" if done.returncode == 0 else "unshare may not make namespaces here, or ip is not installed (scripts/setup.sh)"


def network(folder):
    """In namespaces of its own: the loopback, the coordinator's address, the host names, an empty /srv."""
    hosts, resolver = folder / "hosts", folder / "resolv.conf"
    resolver.write_text("lookup file\n")  # c-ares (gRPC) then asks no name server, for which it would wait here
    hosts.write_text("".join(f"{address} {name}\n" for name, address in {"localhost": "127.0.0.1", **guide_rules.HOSTS}.items()))
    for command in (f"mount --bind {hosts} /etc/hosts", f"mount --bind {resolver} /etc/resolv.conf", "mount -t tmpfs tmpfs /srv", "ip link set lo up",
                    f"ip address add {guide_rules.HOSTS[guide_rules.HUB]}/32 dev lo"):
        subprocess.run(command.split(), check=True)


def connect(pid, address):
    """Joins the network of a terminal with ours: a pair of interfaces, `address` on its side and the address before it on ours."""
    while os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        time.sleep(0.01)  # until unshare has become bash
    before, _, last = address.rpartition(".")
    gateway, ours = f"{before}.{int(last) - 1}", f"to-{before.rpartition('.')[2]}"
    inside = ("nsenter", f"--net=/proc/{pid}/ns/net")
    for command in (f"ip link add {ours} type veth peer name eth0 netns {pid}", f"ip address add {gateway}/30 dev {ours}",
                    f"ip link set {ours} up"):
        subprocess.run(command.split(), check=True)
    for command in ("ip link set lo up", f"ip address add {address}/30 dev eth0", "ip link set eth0 up", f"ip route add default via {gateway}"):
        subprocess.run([*inside, *command.split()], check=True)


def logs_of(folder):
    for log in sorted(folder.glob("machines/*/atoll/*.log")):
        yield f"--- {log.relative_to(folder)}\n{log.read_text(errors='replace')[-2000:]}"


def run_guide(name, arguments):
    """In a process of its own, in namespaces of its own."""
    begun, rule = time.monotonic(), guide_rules.RULES[name]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-guide-"))
    story = None
    try:
        network(folder)
        story = Story(folder, arguments.bin, rule, (arguments.guides / name).read_text(), begun + arguments.timeout)
        story.tell()
    except Failed as failure:
        print(f"{name}: {failure}\n" + "\n".join(logs_of(folder)), flush=True)
        return 1
    finally:
        if story:
            story.close()
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{name}: passed in {time.monotonic() - begun:.0f} s", flush=True)
    return 0


def run_all(names, arguments):
    def run_one(name):
        options = ["--bin", arguments.bin, "--timeout", str(arguments.timeout), "--guides", arguments.guides,
                   *(["--keep"] if arguments.keep else [])]
        return subprocess.run([*ISOLATED, sys.executable, "-B", __file__, "--inside", *options, name],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    failed = []
    with concurrent.futures.ThreadPoolExecutor(2) as lanes:
        for name, done in zip(names, lanes.map(run_one, names)):
            print(f"{name}\n{done.stdout}", end="", flush=True)
            if done.returncode != 0:
                failed.append(name)
    if failed:
        print(f"guides: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--guides", type=pathlib.Path, default=GUIDES, help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", metavar="GUIDE.md")
    arguments = parser.parse_args()
    arguments.bin = arguments.bin.resolve()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if unknown := [name for name in arguments.names if name not in guide_rules.RULES]:
        parser.error(f"no rule for {unknown[0]}; there are {', '.join(sorted(guide_rules.RULES))}")
    if arguments.inside:
        return run_guide(arguments.names[0], arguments)
    try:
        problems = list(check(arguments.guides, guide_rules.RULES, elsewhere_of(ELSEWHERE.read_text()), arguments.names))
    except Failed as failure:
        problems = [str(failure)]
    for problem in problems:
        print(f"guides: {problem}", file=sys.stderr)
    if problems or arguments.check:
        return 1 if problems else 0
    if missing := [name for name in PROGRAMS if not (arguments.bin / name).exists()]:
        print(f"skipped: {', '.join(missing)} not built in {arguments.bin}")
        return 77
    if problem := isolation_problem():
        print(f"skipped: {problem}")
        return 77
    names = arguments.names or [name for name, rule in guide_rules.RULES.items() if rule.python != "interop"]
    if any(guide_rules.RULES[name].python == "interop" for name in names) and not os.access(interop_python(), os.X_OK):
        print(f"skipped: there is no {interop_python()}; `scripts/setup.sh --groups interop` makes it")
        return 77
    return run_all(names, arguments)


if __name__ == "__main__":
    sys.exit(main())
