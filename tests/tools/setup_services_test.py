#!/usr/bin/env python3
"""scripts/setup.sh disables the services of packages that it installs, and no other.

Programs on PATH stand in for apt-get, dpkg-query, systemctl, id and sudo: nothing is installed, and what would run as root is noted.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SERVICES = ("prometheus", "docker-registry")
FAKES = {
    "id": "echo 1000",
    "dpkg-query": 'sed "s/^/installed /" "$FOLDER/installed"',
    "apt-get": "exit 1",
    # As root: noted with what comes in by a pipe, and not done.
    "sudo": 'echo "$*" >>"$FOLDER/calls"; case $1 in tee) cat >>"$FOLDER/policy" ;; esac',
    "systemctl": '[ "$1" = cat ] && grep -qxF "$2" "$FOLDER/units"',
}


class SetupServices(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-setup-"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "path").mkdir()
        for name, text in FAKES.items():
            path = self.folder / "path" / name
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)

    def disabled(self, missing, units=()):
        """The units that are disabled by a call that finds these packages missing, on a machine with these units."""
        for name in ("calls", "policy"):
            (self.folder / name).write_text("")
        packages = subprocess.run([SOURCE / "scripts/setup.sh", "--list"], text=True, capture_output=True, check=True).stdout.split()
        (self.folder / "installed").write_text("".join(f"{name}\n" for name in packages if name not in missing))
        (self.folder / "units").write_text("".join(f"{name}\n" for name in units))
        environment = dict(os.environ, PATH=f"{self.folder / 'path'}:{os.environ['PATH']}", FOLDER=str(self.folder))
        done = subprocess.run([SOURCE / "scripts/setup.sh"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              env=environment, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        calls = (self.folder / "calls").read_text().splitlines()
        (install,) = [call for call in calls if " install " in call]
        self.assertEqual(install.split("--no-install-recommends ")[1].split(), [name for name in packages if name in missing])
        policy = (self.folder / "policy").read_text()
        if policy:  # a machine with a policy keeps its own
            self.assertEqual([name for name in SERVICES if f"{name}|" in policy], [name for name in SERVICES if name in missing])
            self.assertIn("rm -f /usr/sbin/policy-rc.d", calls)
        return [unit for call in calls if "disable" in call for unit in call.split() if unit.endswith(".service")]

    def test_disables_what_it_installs(self):
        self.assertEqual(self.disabled(SERVICES), ["prometheus.service", "docker-registry.service"])

    def test_leaves_the_other_service_alone(self):
        self.assertEqual(self.disabled(["docker-registry"], ["prometheus.service"]), ["docker-registry.service"])
        self.assertEqual(self.disabled(["prometheus"], ["docker-registry.service"]), ["prometheus.service"])
        self.assertEqual(self.disabled(["git"], ["prometheus.service", "docker-registry.service"]), [])

    def test_leaves_a_unit_alone_that_was_there_before_the_package(self):
        self.assertEqual(self.disabled(["prometheus"], ["prometheus.service"]), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
