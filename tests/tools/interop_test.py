#!/usr/bin/env python3
"""scripts/interop.sh says where its environment is, and changes no folder that it did not make. Installs nothing."""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def interop(*arguments, **environment):
    ours = ("ATOLL_INTEROP_PYTHON", "ATOLL_PEERS_PYTHON", "XDG_CACHE_HOME", "HOME")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return subprocess.run([SOURCE / "scripts/interop.sh", *arguments], capture_output=True, text=True, timeout=60, check=False,
                          env={**kept, **environment})


class Interop(unittest.TestCase):
    def test_the_environment_has_one_place(self):
        for environment, path in (
            ({"ATOLL_INTEROP_PYTHON": "/a/b/bin/python3", "HOME": "/h"}, "/a/b/bin/python3"),
            ({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "/c/atoll/interop/bin/python"),
            ({"HOME": "/h"}, "/h/.cache/atoll/interop/bin/python"),
            ({}, f"/var/tmp/atoll-interop-{os.getuid()}/bin/python"),
        ):
            self.assertEqual(interop("--python", **environment).stdout, path + "\n")

    def test_the_compared_libraries_have_another_place(self):
        for environment, path in (
            ({"ATOLL_PEERS_PYTHON": "/a/b/bin/python3", "HOME": "/h"}, "/a/b/bin/python3"),
            ({"ATOLL_INTEROP_PYTHON": "/a/b/bin/python3", "HOME": "/h"}, "/h/.cache/atoll/peers/bin/python"),
            ({}, f"/var/tmp/atoll-peers-{os.getuid()}/bin/python"),
        ):
            self.assertEqual(interop("--peers", "--python", **environment).stdout, path + "\n")

    def test_a_place_that_is_no_environment_is_rejected(self):
        for python in ("python3", "/usr/local/python3", "bin/python"):
            done = interop(ATOLL_INTEROP_PYTHON=python)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("name the Python of a virtual environment", done.stderr)

    def test_a_check_changes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            done = interop("--check", ATOLL_INTEROP_PYTHON=f"{folder}/new/bin/python")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    def test_a_folder_of_others_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            foreign = pathlib.Path(folder) / "mine"
            foreign.write_text("mine")
            done = interop(ATOLL_INTEROP_PYTHON=f"{folder}/bin/python")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("this script did not make it", done.stderr)
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["mine"])

    def test_an_environment_of_these_packages_is_up_to_date(self):
        for options, packages, name, variable in (
            ((), "scripts/interop.txt", ".atoll-interop", "ATOLL_INTEROP_PYTHON"),
            (("--peers",), "bench/python/peers.txt", ".atoll-peers", "ATOLL_PEERS_PYTHON"),
            (("--nvcc",), "scripts/nvcc.txt", ".atoll-nvcc", "ATOLL_NVCC_PYTHON"),
        ):
            wanted = hashlib.sha256((SOURCE / packages).read_bytes()).hexdigest()
            with tempfile.TemporaryDirectory() as folder:
                python = pathlib.Path(folder, "bin/python")
                python.parent.mkdir()
                python.symlink_to(sys.executable)
                stamp = pathlib.Path(folder, name)
                for text, code in ((wanted, 0), ("of other packages", 1)):
                    stamp.write_text(text + "\n")
                    self.assertEqual(interop(*options, "--check", **{variable: str(python)}).returncode, code)

    def test_every_package_but_numpy_is_pinned(self):
        lines = [line for line in (SOURCE / "scripts/interop.txt").read_text().splitlines() if line and not line.startswith("#")]
        self.assertEqual([line for line in lines if "==" not in line], ["numpy"])
        self.assertIn("torch", [line.split("==")[0] for line in lines])


if __name__ == "__main__":
    unittest.main()
