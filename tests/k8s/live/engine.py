"""Images and containers on this machine, with podman and buildah, from a base that debootstrap makes."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "atoll-tools"
BASE = "localhost/atoll-base:test"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def version():
    text = (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(atoll VERSION ([0-9.]+)", text)[1]


def run(*command, **options):
    """Standard output; an error holds what the program said."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        words = " ".join(str(c) for c in command)
        raise RuntimeError(f"{words}: exit code {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def release():
    lines = pathlib.Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    if found.get("ID") != "debian":
        skip("this is no Debian, so that its packages have no base to be installed on")
    return found["VERSION_ID"].strip('"')


def base_archive():
    """A minimal Debian of this machine's release as a tar file, made once."""
    archive = CACHE / f"debian-{release()}.tar"
    if archive.exists():
        return archive
    CACHE.mkdir(parents=True, exist_ok=True)
    root = pathlib.Path(tempfile.mkdtemp(prefix="atoll-base-", dir=CACHE))
    try:
        made = subprocess.run([SOURCE / "scripts/fresh_machine_test.sh", release(), "--only", "base", "--root", root, "--keep"],
                              check=False)
        if made.returncode != 0:
            skip("scripts/fresh_machine_test.sh could not make a base")
        excluded = [f"--exclude=./{name}" for name in (".atoll-fresh-machine", "src/atoll", "var/cache/apt/archives/*.deb",
                                                       "var/cache/apt/*.bin", "var/lib/apt/lists/*")]
        run("tar", "-C", root, "--one-file-system", *excluded, "-cf", archive.with_suffix(".new"), ".")
        archive.with_suffix(".new").rename(archive)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return archive


def driver(folder):
    """overlay, where this machine can mount one over `folder`; else vfs, which copies."""
    for name in ("lower", "upper", "work", "merged"):
        (folder / "probe" / name).mkdir(parents=True)
    at = folder / "probe"
    options = f"lowerdir={at}/lower,upperdir={at}/upper,workdir={at}/work"
    mounted = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, at / "merged"], check=False, stderr=subprocess.DEVNULL)
    if mounted.returncode == 0:
        subprocess.run(["umount", at / "merged"], check=True)
    shutil.rmtree(at)
    return "overlay" if mounted.returncode == 0 else "vfs"


class Engine:
    """podman and buildah over a storage of their own; everything is gone when it is closed."""

    def __init__(self):
        for tool in ("podman", "buildah", "runc", "debootstrap", "conmon"):
            if not shutil.which(tool):
                skip(f"{tool} is not installed (scripts/setup.sh --groups containers)")
        if os.geteuid() != 0:
            skip("must be root: debootstrap makes the base")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-containers-"))
        settings = self.folder / "containers.conf"
        settings.write_text('[containers]\ndefault_ulimits=["nofile=1024:1024","nproc=4096:4096"]\n'
                            '[engine]\nruntime="runc"\ncgroup_manager="cgroupfs"\nevents_logger="file"\n', encoding="utf-8")
        storage = self.folder / "storage.conf"
        storage.write_text(f'[storage]\ndriver="{driver(self.folder)}"\ngraphroot="{self.folder}/storage"\nrunroot="{self.folder}/run"\n',
                           encoding="utf-8")
        self.environment = {**os.environ, "CONTAINERS_CONF": str(settings), "CONTAINERS_STORAGE_CONF": str(storage),
                            "BUILDAH_ISOLATION": "chroot"}
        self.storage = ["--root", self.folder / "storage", "--runroot", self.folder / "run"]
        self.networks = []

    def podman(self, *command, **options):
        return run("podman", *self.storage, *command, env=self.environment, **options)

    def build(self, dockerfile, tag, context, arguments=(), contexts=()):
        return run("buildah", *self.storage, "bud", "--isolation", "chroot", "--pull-never", "--build-arg", f"BASE={BASE}",
                   *[word for a in arguments for word in ("--build-arg", a)],
                   *[word for c in contexts for word in ("--build-context", c)],
                   "-f", SOURCE / "k8s/images" / dockerfile, "-t", tag, context, env=self.environment)

    def image(self, tag):
        return json.loads(self.podman("image", "inspect", tag))[0]

    def close(self):
        for command in (["rm", "--all", "--force", "--time", "0"], *(["network", "rm", n] for n in self.networks)):
            subprocess.run(["podman", *map(str, self.storage), *command], env=self.environment, check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["buildah", *map(str, self.storage), "rmi", "--all", "--force"], env=self.environment, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["umount", str(self.folder / "storage/overlay")], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)


def packages(build, folder):
    """The .deb files of this build's programs, as cpack makes them."""
    run("cpack", "--config", "CPackConfig.cmake", "-B", folder, cwd=build)
    return sorted(folder.glob("*.deb"))
