#!/usr/bin/env python3
"""Which folders scripts/fresh_machine_test.sh uses and deletes, and that it installs what a stage needs.

Programs on PATH stand in for debootstrap, chroot, mount and id, so that the test needs no root and changes nothing else.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MARK = ".atoll-fresh-machine"
DEBIAN = 'for root; do case $root in /*) break ;; esac; done; mkdir -p "$root/usr/bin" "$root/etc/apt" "$root/proc" "$root/sys" "$root/dev"'
FAKES = {
    "id": "echo 0",
    "mount": "exit 0",
    "umount": "exit 0",
    "apt-get": "exit 0",
    "debootstrap": f'{DEBIAN}; touch "$root/usr/bin/apt-get"; chmod 755 "$root/usr/bin/apt-get"',
    # The last argument is the command for the shell in the Debian. Nothing is installed there until setup.sh ran.
    "chroot": 'for command; do :; done; echo "${command#*atoll}" >>"$CALLS"; '
              'case $command in *"setup.sh --check"*) [ -e "$1/installed" ] ;; *setup.sh*) touch "$1/installed" ;; esac',
}


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


class FreshMachineRoot(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-fresh-root-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.root = self.folder / "debian"
        self.calls = self.folder / "calls"
        (self.folder / "path").mkdir()
        (self.folder / "tmp").mkdir()
        for name, text in FAKES.items():
            self.fake(name, text)
        repository = self.folder / "repository"
        for name in ("scripts", "tests/docs"):
            (repository / name).mkdir(parents=True)
        for name in ("scripts/fresh_machine_test.sh", "scripts/lib.sh", "tests/docs/readme_blocks.py", "README.md"):
            shutil.copy(SOURCE / name, repository / name)
        git = ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@example"]
        subprocess.run([*git, "init", "--quiet"], check=True)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "--quiet", "--message", "a"], check=True)
        self.script = repository / "scripts/fresh_machine_test.sh"

    def fake(self, name, text):
        path = self.folder / "path" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def start(self, *arguments):
        environment = dict(os.environ, PATH=f"{self.folder / 'path'}:{os.environ['PATH']}", CALLS=str(self.calls),
                           TMPDIR=str(self.folder / "tmp"))
        return subprocess.Popen([self.script, "12", "--mirror", "http://mirror.invalid", *arguments], env=environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def run_script(self, code, *arguments):
        """The output of a call that ends with CODE."""
        process = self.start(*arguments)
        output = process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, code, output)
        self.assertEqual([path.name for path in (self.folder / "tmp").iterdir()], [], output)
        return output

    def base(self, code=0, *more):
        return self.run_script(code, "--only", "base", "--root", str(self.root), *more)

    def test_a_folder_of_others_is_refused_and_stays_as_it_was(self):
        (self.root / "etc/apt/sources.list.d").mkdir(parents=True)
        (self.root / "usr/bin").mkdir(parents=True)
        for name in ("etc/apt/sources.list.d/own.list", "etc/resolv.conf", "usr/bin/apt-get"):
            (self.root / name).write_text("own")
        (self.root / "usr/bin/apt-get").chmod(0o755)
        (self.folder / "link").symlink_to(self.root)
        before = tree(self.root)
        for place in (self.root, self.folder / "link", self.root / "etc"):
            for keep in ((), ("--keep",)):
                output = self.run_script(2, "--root", str(place), *keep)
                self.assertIn(f"has files and lacks the mark {MARK}", output)
                self.assertIn("Name a new or empty folder", output)
                self.assertEqual(tree(self.root), before)
        self.assertIn("is not a folder", self.run_script(2, "--root", str(self.root / "etc/resolv.conf")))
        self.assertIn("must not be /", self.run_script(2, "--root", str(self.root / "../../../../../../../..")))
        self.assertIn("use a path that has only letters", self.run_script(2, "--root", str(self.folder / "a b")))
        self.assertIn("/proc is mounted", self.run_script(2, "--root", "/proc"))
        self.assertEqual(tree(self.root), before)

    def test_deletes_what_it_made_and_keeps_it_when_told_to(self):
        self.base()
        self.assertFalse(self.root.exists())
        self.base(0, "--keep")
        self.assertTrue((self.root / MARK).is_file())
        (self.root / "kept").touch()
        output = self.base(0, "--keep")
        self.assertIn("using the Debian that is in", output)
        self.assertTrue((self.root / "kept").exists())
        self.base()
        self.assertFalse(self.root.exists())
        self.run_script(0, "--only", "base")  # a folder of its own under TMPDIR, which run_script looks at

    def test_an_empty_folder_stays_and_is_empty_again(self):
        self.root.mkdir()
        self.base()
        self.assertEqual(list(self.root.iterdir()), [])
        self.root.rmdir()

    def test_a_debian_that_was_marked_by_hand_is_used_again(self):
        (self.root / "usr/bin").mkdir(parents=True)
        (self.root / "etc/apt").mkdir(parents=True)
        (self.root / "usr/bin/apt-get").touch(0o755)
        self.assertIn(f"touch {self.root}/{MARK}", self.base(2))
        (self.root / MARK).touch()
        self.assertIn("using the Debian that is in", self.base(0, "--keep"))

    def test_a_debootstrap_that_fails_or_is_interrupted_leaves_nothing_of_its_own(self):
        self.fake("debootstrap", f"{DEBIAN}; echo no such suite; exit 1")
        own = self.folder / "debian.debootstrap.log"
        own.write_text("own")
        for there in (False, True):
            if there:
                self.root.mkdir()
            self.assertIn("no such suite", self.base(1))
            self.assertEqual(self.root.exists(), there)
        self.assertEqual(list(self.root.iterdir()), [])
        self.root.rmdir()
        self.assertEqual(own.read_text(), "own")
        self.fake("debootstrap", f"{DEBIAN}; exec sleep 60")
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            process = self.start("--only", "base", "--root", str(self.root))
            while not (self.root / "dev").exists():
                self.assertIsNone(process.poll())
                time.sleep(0.05)
            os.killpg(process.pid, number)
            output = process.communicate(timeout=60)[0]
            self.assertEqual(process.returncode, code, output)
            self.assertFalse(self.root.exists())

    def test_the_rest_of_the_readme_gets_its_packages_first(self):
        self.run_script(0, "--only", "rest", "--root", str(self.root), "--keep")
        check, setup, rest = [line for line in self.calls.read_text().splitlines() if line]
        self.assertEqual((check, setup), ("./scripts/setup.sh --check", "./scripts/setup.sh"))
        self.assertIn("readme_blocks.py --run 'By hand'", rest)
        self.calls.unlink()
        self.run_script(0, "--only", "rest", "--root", str(self.root))
        self.assertEqual(len([line for line in self.calls.read_text().splitlines() if line]), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
