#!/usr/bin/env python3
"""scripts/dev-certs.sh --renew: the coordinator keeps its host names, and an old CA is kept and accepted beside the new one."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HOSTS = ["--host", "coordinator.example", "--host", "10.1.2.3", "--host", "2001:db8::1"]
DEFAULT_NAMES = ["DNS:localhost", "IP Address:0:0:0:0:0:0:0:1", "IP Address:127.0.0.1"]
NAMES = sorted([*DEFAULT_NAMES, "DNS:coordinator.example", "IP Address:10.1.2.3", "IP Address:2001:DB8:0:0:0:0:0:1"])


def tree(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


class DevCerts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-dev-certs-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.certs = self.folder / "certs"

    def make(self, *arguments, code=0):
        done = subprocess.run([SOURCE / "scripts/dev-certs.sh", self.certs, *arguments], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60, check=False)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def openssl(self, *arguments):
        return subprocess.run(["openssl", *map(str, arguments)], text=True, capture_output=True, timeout=60, check=False)

    def names(self):
        said = self.openssl("x509", "-in", self.certs / "coordinator.pem", "-noout", "-ext", "subjectAltName").stdout
        return sorted(said.splitlines()[1].strip().split(", "))

    def verifies(self, name, ca="ca.pem"):
        return self.openssl("verify", "-CAfile", self.certs / ca, self.certs / name).returncode == 0

    def test_a_renewed_coordinator_keeps_its_host_names(self):
        self.make("--coordinator", *HOSTS)
        self.assertEqual(self.names(), NAMES)
        first = (self.certs / "coordinator.pem").read_bytes()
        for _ in range(2):
            self.make("--renew", "--coordinator")
            self.assertEqual(self.names(), NAMES)
        self.assertNotEqual((self.certs / "coordinator.pem").read_bytes(), first)
        self.make("--renew")  # everything that a call without names makes
        self.assertEqual(self.names(), NAMES)
        self.make("--renew", "--coordinator", "--host", "other.example")
        self.assertEqual(self.names(), sorted([*DEFAULT_NAMES, "DNS:other.example"]))
        (self.certs / "coordinator.pem").write_text("no certificate")
        before = tree(self.certs)
        self.assertRegex(self.make("--renew", "--coordinator", code=2), r"\Adev-certs: cannot read the host names .*--host\n\Z")
        self.assertEqual(tree(self.certs), before)

    def test_a_new_ca_and_the_old_one_are_both_accepted(self):
        self.make("--coordinator", "--worker", "old", "--worker", "renewed")
        old_ca, old_key = (self.certs / "ca.pem").read_bytes(), (self.certs / "ca.key").read_bytes()
        self.make("--renew", "--new-ca", "--worker", "renewed")
        self.assertEqual((self.certs / "ca-old.pem").read_bytes(), old_ca)
        self.assertEqual((self.certs / "ca-old.key").read_bytes(), old_key)
        self.assertEqual((self.certs / "ca-old.key").stat().st_mode & 0o777, 0o600)
        self.assertNotEqual((self.certs / "ca.key").read_bytes(), old_key)
        both = (self.certs / "ca.pem").read_bytes()
        self.assertTrue(both.endswith(old_ca))
        self.assertEqual(both.count(b"BEGIN CERTIFICATE"), 2)
        self.make("--worker", "later")  # signed by the new one
        for name, with_old in (("worker-old.pem", True), ("coordinator.pem", True), ("worker-renewed.pem", False),
                               ("worker-later.pem", False)):
            self.assertTrue(self.verifies(name), name)
            self.assertEqual(self.verifies(name, "ca-old.pem"), with_old, name)

        # A second change would delete the first CA's key; the end of the first one, as docs/guides/security.md has it.
        before = tree(self.certs)
        self.assertIn("ca-old.pem is there, of an earlier --new-ca", self.make("--renew", "--new-ca", "--worker", "old", code=2))
        self.assertEqual(tree(self.certs), before)
        page = (SOURCE / "docs/guides/security.md").read_text()
        (end,) = re.findall(r"^(openssl x509 -in certs/ca.pem .*)$", page, re.M)
        subprocess.run(["bash", "-ec", end], cwd=self.folder, check=True, timeout=60)
        self.assertTrue(self.verifies("worker-later.pem"))
        self.assertFalse(self.verifies("worker-old.pem"))
        self.make("--renew", "--new-ca", "--worker", "old")
        self.assertTrue(self.verifies("worker-later.pem"))

    def test_operators_own_ca_is_kept_too(self):
        self.make("--separate-admin-ca", "--admin", "ann", "--admin", "bob")
        old_key = (self.certs / "admin-ca.key").read_bytes()
        self.make("--renew", "--new-ca", "--admin", "ann")
        self.assertEqual((self.certs / "admin-ca-old.key").read_bytes(), old_key)
        for name in ("admin-ann.pem", "admin-bob.pem"):
            self.assertTrue(self.verifies(name, "admin-ca.pem"), name)

    def test_days_are_decimal(self):
        self.make("--worker", "w0", "--days", "08")
        certificate = self.certs / "worker-w0.pem"
        seconds = 24 * 3600
        self.assertEqual(self.openssl("x509", "-in", certificate, "-noout", "-checkend", 8 * seconds - 600).returncode, 0)
        self.assertEqual(self.openssl("x509", "-in", certificate, "-noout", "-checkend", 8 * seconds + 600).returncode, 1)
        self.make("--renew", "--worker", "w0", "--days", "-01")
        self.assertEqual(self.openssl("x509", "-in", certificate, "-noout", "-checkend", 0).returncode, 1)
        # OpenSSL 3.0 makes no certificate that ended so long ago; it says so.
        done = subprocess.run([SOURCE / "scripts/dev-certs.sh", self.certs, "--renew", "--worker", "w0", "--days", "-08"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
        self.assertIn(done.returncode, (0, 1), done.stdout)
        self.assertNotIn("too great for base", done.stdout)
        self.assertIn("takes a number", self.make("--renew", "--worker", "w0", "--days", "1e3", code=2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
