#!/usr/bin/env python3
"""Adds workers to copies of the overlays with scripts/add-worker-identity.sh: all places are named, or nothing is changed."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
OVERLAYS = SOURCE / "k8s/overlays"


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class AddWorkerIdentity(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-identity-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def overlay(self, name):
        copy = self.folder / name
        shutil.copytree(OVERLAYS / name, copy, ignore=shutil.ignore_patterns("certs"))
        return copy

    def add(self, overlay, cwd=None):
        return subprocess.run([SOURCE / "scripts/add-worker-identity.sh", overlay], capture_output=True, text=True, timeout=60,
                              check=False, cwd=cwd)

    def certify(self, overlay, *names):
        subprocess.run([SOURCE / "scripts/dev-certs.sh", overlay / "certs", *names], check=True, stdout=subprocess.DEVNULL,
                       timeout=60)

    def test_names_the_next_worker_wherever_the_last_one_is_named(self):
        for name, worker, places in (("tls", "atoll-worker", 4), ("island", "island-a-atoll-worker", 3)):
            overlay = self.overlay(name)
            done = self.add(overlay)
            self.assertEqual(done.returncode, 0, done.stderr)
            text = (overlay / "kustomization.yaml").read_text()
            self.assertIn("  - worker-1\n  - worker-2\n", text)
            self.assertEqual(text.count(f"{worker}-2"), places, text)
            self.assertEqual(text.count(f"{worker}-1"), (OVERLAYS / name / "kustomization.yaml").read_text().count(f"{worker}-1"))
            self.assertIn('nameSuffix: "-2"', (overlay / "worker-2/kustomization.yaml").read_text())
            self.assertEqual([], list(overlay.glob(".adding*")))

    def test_uses_a_certificate_that_is_there_and_makes_one_that_is_not(self):
        overlay = self.overlay("tls")
        self.certify(overlay, "--coordinator", "--worker", "atoll-worker-2")
        kept = (overlay / "certs/worker-atoll-worker-2.pem").read_bytes()
        for _ in range(2):
            done = self.add(overlay)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((overlay / "certs/worker-atoll-worker-2.pem").read_bytes(), kept)
        self.assertTrue((overlay / "certs/worker-atoll-worker-3.key").exists())

    def test_prints_paths_that_its_caller_can_use(self):
        self.certify(self.overlay("tls"), "--coordinator")
        for overlay in ("tls", "tls/", "./tls"):
            done = self.add(overlay, cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            made = [line.split()[1].rstrip(",") for line in done.stdout.splitlines() if line.startswith("made ")]
            self.assertEqual(len(made), 1, done.stdout)
            self.assertTrue((self.folder / made[0]).exists(), done.stdout)
        self.overlay("island")
        self.assertIn("\nisland/certs/worker-island-a-atoll-worker-2.pem and .key are missing",
                      "\n" + self.add("island", cwd=self.folder).stdout)

    def test_names_the_files_that_an_island_lacks(self):
        overlay = self.overlay("island")
        done = self.add(overlay)
        self.assertIn("certs/worker-island-a-atoll-worker-2.pem and .key are missing: sign them where ca.key is", done.stdout)
        self.assertNotIn("workers scale", done.stdout)
        (overlay / "certs").mkdir()
        (overlay / "certs/worker-island-a-atoll-worker-3.pem").write_text("signed elsewhere")
        self.assertNotIn("missing", self.add(overlay).stdout)

    def test_the_certificate_is_accepted_while_the_ca_is_replaced(self):
        overlay = self.overlay("tls")
        self.certify(overlay, "--coordinator", "--worker", "atoll-worker-1")
        self.certify(overlay, "--renew", "--new-ca", "--coordinator")
        done = self.add(overlay)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("worker-atoll-worker-1.pem", "worker-atoll-worker-2.pem"):
            subprocess.run(["openssl", "verify", "-CAfile", overlay / "certs/ca.pem", overlay / "certs" / name], check=True,
                           stdout=subprocess.DEVNULL, timeout=60)

    def test_changes_nothing_when_a_place_or_the_certificate_is_missing(self):
        for place, said in (("  - worker-1\n", "among the resources"), ("  - name: atoll-worker-1-tls\n", "secretGenerator"),
                            ("atoll-worker-0, atoll-worker-1]", "launcher may scale")):
            overlay = self.overlay("tls")
            path = overlay / "kustomization.yaml"
            self.assertIn(place, path.read_text())
            path.write_text(path.read_text().replace(place, place.replace("worker-1", "trainer")))
            before = tree(overlay)
            done = self.add(overlay)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(said, done.stderr)
            self.assertEqual(tree(overlay), before)
            shutil.rmtree(overlay)
        overlay = self.overlay("tls")
        self.certify(overlay, "--coordinator")
        (overlay / "certs/ca.key").write_text("no key")
        before = tree(overlay)
        self.assertNotEqual(self.add(overlay).returncode, 0)
        self.assertEqual(tree(overlay), before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
