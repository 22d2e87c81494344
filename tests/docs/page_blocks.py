"""The commands of a Markdown page, and shells to run them in: shared by readme_blocks.py and guide_commands.py.

A block is the text between ```sh and ```. Its section is the heading above it.
"""
import os
import pathlib
import re
import select
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Failed(Exception):
    pass


def blocks_of(text):
    """[(section, block)] of a page, in order."""
    found, section, block, other = [], "", None, False
    for line in text.splitlines():
        if block is not None:
            if line == "```":
                found.append((section, "\n".join(block) + "\n"))
                block = None
            else:
                block.append(line)
        elif line == "```sh" and not other:
            block = []
        elif line.startswith("```"):
            other = not other
        elif not other and (heading := re.match(r"#+ (.*)", line)):
            section = heading.group(1)
    if block is not None:
        raise Failed(f"the last block of '{section}' has no end")
    return found


def outputs_of(text):
    """[(section, line)] of the lines in ```text fences of a page: what the commands of that section print."""
    found, section, inside = [], "", None
    for line in text.splitlines():
        if inside is not None:
            if line == "```":
                inside = None
            elif inside:
                found.append((section, line))
        elif line.startswith("```"):
            inside = line == "```text"
        elif heading := re.match(r"#+ (.*)", line):
            section = heading.group(1)
    return found


def syntax_problem(block):
    """What bash says about a block that is not valid, or an empty text."""
    parsed = subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True, check=False)
    return parsed.stderr.strip() if parsed.returncode != 0 else ""


def end_groups(shells):
    """Ends the process groups that these shells lead: what a shell started is in its group, also after the shell's end."""
    for number, grace_s in ((signal.SIGTERM, 60), (signal.SIGKILL, 10)):
        for group in _living(shells):
            try:
                os.killpg(group, number)
            except ProcessLookupError:
                pass
        until = time.monotonic() + grace_s
        while _living(shells) and time.monotonic() < until:
            time.sleep(0.1)


def _living(shells):
    """The process groups with a process that has not ended."""
    groups, alive = {shell.pid for shell in shells}, set()
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = entry.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue  # it ended meanwhile
        if int(group) in groups and state != "Z":
            alive.add(int(group))
    return alive


class Shell:
    """Runs each block in a shell of its own; end() ends what they left running."""

    def __init__(self, folder, deadline, programs=None):
        self.folder, self.deadline, self.shells = folder, deadline, []
        self.environment = dict(os.environ)
        if programs:
            self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"

    def run(self, block, quiet=False):
        if not quiet:
            print("readme: running\n" + "".join(f"    {line}\n" for line in block.splitlines()), end="", flush=True)
        shell = subprocess.Popen(["bash", "-Eeo", "pipefail", "-c", block], cwd=self.folder, env=self.environment,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL if quiet else None,
                                 stderr=subprocess.DEVNULL if quiet else None, start_new_session=True)
        if not quiet:
            self.shells.append(shell)
        try:
            code = shell.wait(max(0, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Failed("the block took too long") from None
        if code != 0 and not quiet:
            raise Failed(f"the block ended with exit code {code}")
        return code

    def wait_until(self, command, what):
        while self.run(command, quiet=True) != 0:
            if time.monotonic() > self.deadline:
                raise Failed(f"waited in vain for {what}")
            time.sleep(0.5)

    def end(self):
        end_groups(self.shells)


class Terminal:
    """One bash that runs block after block, as a reader's terminal does: folder, variables and background jobs stay.

    `home` is the reader's home folder, where the terminal begins. Everything that the blocks print goes to `log`.
    `command` stands before bash: a program that replaces itself by bash, such as `unshare --net`.
    """

    LOOP = 'while IFS= read -r block; do source "$block" </dev/null {0}>&-; echo >&{0}; done'

    def __init__(self, home, environment, log, command=()):
        self.log, self.blocks = log, 0
        self.answers, answer = os.pipe()
        with log.open("ab") as output:
            self.shell = subprocess.Popen(
                [*command, "bash", "-Eeo", "pipefail", "-c", self.LOOP.format(answer)], cwd=home,
                env={**environment, "HOME": str(home)}, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
                pass_fds=[answer], start_new_session=True)
        os.close(answer)

    def run(self, block, deadline):
        """Runs the block to its end; Failed with the end of its output when a command fails."""
        self.blocks += 1
        file = self.log.with_suffix(f".{self.blocks}.sh")
        file.write_text(block)
        begin = self.log.stat().st_size
        try:
            self.shell.stdin.write(f"{file}\n".encode())
            self.shell.stdin.flush()
        except BrokenPipeError:
            pass  # reported below
        ready, _, _ = select.select([self.answers], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise Failed(f"the block took too long\n{self._output(begin)}")
        if not os.read(self.answers, 1):
            raise Failed(f"the block ended with exit code {self.shell.wait()}\n{self._output(begin)}")

    def _output(self, begin):
        with self.log.open("rb") as log:
            log.seek(begin)
            return log.read().decode(errors="replace")[-4000:]

    def printed(self):
        """The lines that its blocks have printed."""
        return self.log.read_text(errors="replace").splitlines()

    def close(self):
        """Ends the shell and what it left running. It may be called again."""
        if self.answers is None:
            return
        end_groups([self.shell])
        self.shell.stdin.close()
        self.shell.wait()
        os.close(self.answers)
        self.answers = None
