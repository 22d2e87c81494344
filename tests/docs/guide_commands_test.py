#!/usr/bin/env python3
"""guide_commands.py finds every block of the guides, and fails where a command of a block fails. Needs none of our programs."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import guide_commands  # noqa: E402
import guide_rules  # noqa: E402
from page_blocks import Failed, Terminal  # noqa: E402

PAGE = "# T\n## A\n```sh\ntrue\n```\n## B\n```sh\ntrue\n```\n"


def problems(text, headings=("A", "B"), elsewhere=()):
    rule = guide_rules.Rule({heading: () for heading in headings})
    return list(guide_commands.check_page("p.md", text, rule, {heading: "why" for heading in elsewhere}))


class Coverage(unittest.TestCase):
    def test_the_guides_have_no_block_that_nobody_runs(self):
        done = subprocess.run([sys.executable, "-B", HERE / "guide_commands.py", "--check"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_block_needs_a_rule_or_a_line(self):
        self.assertEqual(problems(PAGE), [])
        self.assertEqual(problems(PAGE, headings=("A",), elsewhere=("B",)), [])
        self.assertIn("no rule runs the block under 'B'", problems(PAGE, headings=("A",))[0])

    def test_a_rule_or_a_line_without_a_block_is_told(self):
        self.assertIn("there is no block under 'C'", problems(PAGE, headings=("A", "B", "C"))[0])
        self.assertIn("there is no block under 'C'", problems(PAGE, elsewhere=("C",))[0])
        self.assertIn("stands in guides_elsewhere.txt too", problems(PAGE, elsewhere=("B",))[0])

    def test_code_cannot_hide(self):
        for hidden in ("```bash\nfalse\n```\n", "```\nfalse\n```\n", "- item\n\n  ```sh\n  false\n  ```\n", "~~~sh\nfalse\n~~~\n",
                       "text\n\n    false\n", "text\n\n\tfalse\n"):
            self.assertTrue(problems(PAGE + hidden), hidden)
        self.assertEqual(problems(PAGE + "```text\n    as printed\n```\n```yaml\na:\n    b: 1\n```\n"), [])

    def test_bad_bash_is_told(self):
        self.assertIn("not valid bash", problems(PAGE.replace("true", "if", 1))[0])

    def test_a_guide_without_a_rule_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "new.md").write_text(PAGE)
            found = list(guide_commands.check(pathlib.Path(folder), {"gone.md": None}, {}))
        self.assertEqual([text.split(":")[0] for text in found], ["gone.md", "new.md", "new.md"])

    def test_a_run_ends_only_where_the_page_waits_for_its_end(self):
        for name, rule in guide_rules.RULES.items():
            text = (guide_commands.GUIDES / name).read_text()
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                guide_commands.Story(folder, folder, rule, text, time.monotonic())
                for config in folder.glob("machines/*/atoll/configs/small.yaml"):
                    rounds = int(re.search(r"(?m)^  rounds: (\d+)$", config.read_text())[1])
                    self.assertEqual(rounds < 10**6, "--until-finished" in text, f"{rounds} rounds")

    def test_git_ignores_what_the_guides_make_in_the_checkout(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / ".gitignore").write_text((guide_commands.ROOT / ".gitignore").read_text())
            subprocess.run(["git", "-C", folder, "init", "-q"], check=True)
            for name in ("run1/", "run2/", "run3/", "run-copy/", "run-islands/", "tokens/", "certs/", "state/", "w3.token"):
                done = subprocess.run(["git", "-C", folder, "check-ignore", "-q", name], check=False)
                self.assertEqual(done.returncode, 0, name)

    def test_lines_of_the_list_have_three_parts(self):
        self.assertEqual(guide_commands.elsewhere_of("# c\np.md | A | why\n"), {"p.md": {"A": "why"}})
        for line in ("p.md | A\n", "p.md | A |\n"):
            with self.assertRaises(Failed):
                guide_commands.elsewhere_of(line)


class Running(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.terminal = Terminal(self.folder, {"PATH": "/usr/bin:/bin"}, self.folder / "t.log")
        self.addCleanup(self.terminal.close)

    def run_block(self, block, seconds=30):
        self.terminal.run(block, time.monotonic() + seconds)

    def test_folder_variables_and_background_jobs_stay(self):
        self.run_block("mkdir a\ncd a\nx=5\nsleep 60 &\n")
        self.run_block("[ $x = 5 ] && [ $PWD = ~/a ]\nkill $!\n")

    def test_a_failing_command_fails_the_block(self):
        for block in ("false\ntrue\n", "false | true\n", "exit 3\n", "echo seen >&2; exit 3\n"):
            terminal = Terminal(self.folder, {"PATH": "/usr/bin:/bin"}, self.folder / "f.log")
            with self.assertRaisesRegex(Failed, "exit code [13]" if "seen" not in block else "(?s)exit code 3.*seen"):
                terminal.run(block, time.monotonic() + 30)
            terminal.close()

    def test_a_failure_is_told_while_something_runs_on(self):
        with self.assertRaisesRegex(Failed, "exit code 1"):
            self.run_block("sleep 60 &\nfalse\n", 20)

    def test_a_block_that_takes_too_long_is_ended(self):
        with self.assertRaisesRegex(Failed, "took too long"):
            self.run_block("sleep 60\n", 0.5)

    def test_close_ends_what_runs(self):
        self.run_block("sleep 60 & echo $! >pid\n")
        pid = int((self.folder / "pid").read_text())
        self.terminal.close()
        status = pathlib.Path(f"/proc/{pid}/status")
        self.assertTrue(not status.exists() or "\nState:\tZ" in status.read_text(), "it still runs")


class Guides(unittest.TestCase):
    """Whole guides, with a rule of the test."""

    def guide(self, text, rule):
        with tempfile.TemporaryDirectory() as folder:
            guides = pathlib.Path(folder)
            (guides / "g.md").write_text(text)
            driver = (f"import sys; sys.path.insert(0, {str(HERE)!r}); import guide_rules, guide_commands; "
                      f"guide_rules.RULES = {{'g.md': guide_rules.Rule(**{rule!r})}}; sys.exit(guide_commands.main())")
            command = [*guide_commands.ISOLATED, sys.executable, "-B", "-c", driver, "--inside", "--guides", guides, "--bin", guides, "g.md"]
            return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def setUp(self):
        if problem := guide_commands.isolation_problem():
            self.skipTest(problem)

    def test_a_guide_passes_and_a_failing_one_names_heading_and_output(self):
        rule = {"headings": {"A": (), "B": ()}, "given": "touch given\n"}
        done = self.guide(PAGE.replace("true", "[ -e given ] && [ -e README.md ] && [ -e configs/small.yaml ]"), rule)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.guide(PAGE.replace("true", "echo words; false", 2).replace("echo words; false", "true", 1), rule)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?s)under 'B':.*exit code 1.*words")

    def test_a_page_shows_what_its_commands_print(self):
        page = "## A\n```sh\necho so\n```\n```text\n{}\n```\n"
        self.assertEqual(self.guide(page.format("so"), {"headings": {"A": ()}}).returncode, 0)
        done = self.guide(page.format("other"), {"headings": {"A": ()}})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?s)under 'A': no command prints this line of the page:.other")

    def test_machines_have_networks_of_their_own_and_reach_each_other_by_name(self):
        hub, one, two = guide_rules.HOSTS
        listen = "python3 -c 'import socket; s = socket.create_server((\"0.0.0.0\", 7600)); [s.accept() for _ in range(2)]' & sleep 1\nmkdir in"
        ask = f"""python3 -c 'import socket; socket.create_connection(("{hub}", 7600), 5)'
! python3 -c 'import socket; socket.create_connection(("127.0.0.1", 7600), 5)' 2>/dev/null
echo gpu1 >name; scp name {hub}:in
[ "$(cat name)" = $(basename $HOME | cut -d. -f1) ]"""
        done = self.guide(f"## A\n```sh\n{listen}\n```\n## B\n```sh\n{ask}\n```\n", {"headings": {"A": (hub,), "B": (one, two)}})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Skips(unittest.TestCase):
    def test_a_machine_without_namespaces_skips_the_guides(self):
        with tempfile.TemporaryDirectory() as nothing:
            done = subprocess.run([sys.executable, "-B", __file__, "Guides"], env={**os.environ, "PATH": nothing}, capture_output=True,
                                  text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("skipped: unshare", done.stdout)


def main():
    """77 for ctest when a case was skipped and no other failed."""
    result = unittest.main(exit=False).result
    for _, reason in result.skipped:
        print(f"skipped: {reason}")
    if not result.wasSuccessful():
        return 1
    return 77 if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
