"""Builds the images from packages of this build, and says what they must be like."""
import pathlib
import shutil
import subprocess
import tempfile

from live.engine import BASE, SOURCE, base_archive, packages, version

COORDINATOR = f"localhost/atoll/coordinator:{version()}"
WORKER = f"localhost/atoll/worker-cpu:{version()}"
LOCKED_DOWN = ["--rm", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges", "--network=none"]
MOST_MEGABYTES = 120  # that the coordinator's image may have over its base


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def check_image(engine, tag, program):
    image = engine.image(tag)
    expect(image["User"] == "65532:65532", f"{tag} runs as {image['User']!r}")
    expect(image["Config"]["Entrypoint"] == [f"/usr/bin/{program}"], f"{tag}: {image['Config']['Entrypoint']}")
    for label in ("title", "description", "version", "revision", "licenses"):
        expect(image["Labels"].get(f"org.opencontainers.image.{label}"), f"{tag} has no label {label}")
    megabytes = (image["Size"] - engine.image(BASE)["Size"]) / 1e6
    print(f"{tag}: {megabytes:.0f} MB over its base", flush=True)
    return megabytes


def build_cuda(engine, context):
    """The last stage only, with a package and a LibTorch that are none: there is no CUDA here to compile against."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="atoll-cuda-", dir=engine.folder))
    (work / "libtorch/lib").mkdir(parents=True)
    (work / "libtorch/lib/libtorch_cuda.so").write_text("none", encoding="utf-8")
    root = work / "package"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text("Package: atoll-worker\nVersion: 0.2.0\nArchitecture: all\nMaintainer: nobody\n"
                                         "Description: none\n", encoding="utf-8")
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/atoll-worker").write_text("#!/bin/sh\nls /opt/libtorch/lib; id -u\n", encoding="utf-8")
    (root / "usr/bin/atoll-worker").chmod(0o755)
    (context / "cuda").mkdir()
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", root, context / "cuda/atoll-worker_0.2.0_all.deb"], check=True,
                   stdout=subprocess.DEVNULL)
    tag = f"localhost/atoll/worker-cuda:{version()}"
    engine.build("worker-cuda.Dockerfile", tag, context, ["PACKAGES=prebuilt", "DEBS=cuda"], [f"libtorch={work / 'libtorch'}"])
    check_image(engine, tag, "atoll-worker")
    expect(engine.podman("run", *LOCKED_DOWN, tag).split() == ["libtorch_cuda.so", "65532"], "the CUDA image lacks its LibTorch")


def build_images(engine, build):
    """The names of what was built: the coordinator's image, and the worker's when the build has one."""
    with open(base_archive(), "rb") as base:
        engine.podman("import", "-", BASE, stdin=base)
    context = engine.folder / "context"
    (context / "debs").mkdir(parents=True)
    debs = packages(build, context / "debs")
    shutil.copytree(SOURCE / "docs", context / "docs")
    arguments = ["PACKAGES=prebuilt", "DEBS=debs", f"VERSION={version()}", "REVISION=test"]
    engine.build("coordinator.Dockerfile", COORDINATOR, context, arguments)
    megabytes = check_image(engine, COORDINATOR, "atoll-coordinator")
    expect(megabytes <= MOST_MEGABYTES, f"the coordinator's image has {megabytes:.0f} MB over its base, more than {MOST_MEGABYTES}")
    for program in ("atoll-coordinator", "atollctl", "atoll-data"):
        print(engine.podman("run", *LOCKED_DOWN, f"--entrypoint=/usr/bin/{program}", COORDINATOR, "--version").strip(), flush=True)
    build_cuda(engine, context)
    if not any(deb.name.startswith("atoll-worker_") for deb in debs):
        return [COORDINATOR]
    engine.build("worker-cpu.Dockerfile", WORKER, context, arguments)
    check_image(engine, WORKER, "atoll-worker")
    print(engine.podman("run", *LOCKED_DOWN, WORKER, "--version").strip(), flush=True)
    return [COORDINATOR, WORKER]
