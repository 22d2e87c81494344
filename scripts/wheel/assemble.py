#!/usr/bin/env python3
"""Adds the native files to a pure wheel of the package atoll, and gives it the tag of the glibc that its library needs.

Usage: assemble.py --pure WHEEL --library SO --engine PROGRAM --launcher PROGRAM --out DIR

  atoll/_native/libatoll_client.so.1     loaded by Python, so it must fit the machine's glibc: the tag states the oldest
  atoll/_native/atoll/atoll-engine       the launcher, a static program
  atoll/_native/atoll/engine/            the engine with its loader and all its libraries: it needs nothing of the machine
  atoll/_native/atoll/engine/copyright/  of the Debian packages that the libraries come from

Prints the path of the wheel. Equal inputs give equal bytes. Exit codes: 0 done, 1 a file does not fit, 2 wrong usage.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

NATIVE = "atoll/_native"
BUNDLE = f"{NATIVE}/atoll/engine"
LOADER = "ld-linux-x86-64.so.2"
# What a library that Python loads may need: parts of every glibc.
OF_GLIBC = re.compile(r"(libc|libm|libdl|libpthread|librt)\.so\.\d+|ld-linux-x86-64\.so\.2")
OLDEST_GLIBC = (2, 17)  # the oldest that pip knows under the name manylinux_X_Y


class DoesNotFit(Exception):
    """A file cannot be part of the wheel."""


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed_glibc(library):
    """The oldest glibc that has every symbol which `library` takes from it."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", library))
    foreign = [name for name in needed if not OF_GLIBC.fullmatch(name)]
    if foreign:
        raise DoesNotFit(f"{library} links {', '.join(foreign)}: a library that Python loads may need glibc only; link it statically")
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"Name: GLIBC_([\d.]+)", output("readelf", "-VW", library))}
    return max(versions | {OLDEST_GLIBC})


def engine_libraries(engine):
    """The engine's loader, and {name: path} of every library that the loader finds for it."""
    loader, libraries = None, {}
    for line in output("ldd", engine).splitlines():
        if "not found" in line:
            raise DoesNotFit(f"{engine}: {line.strip()}; install the library, or build the engine again")
        match = re.match(r"\s+(\S+) => (/\S+) ", line)
        if match:
            libraries[match.group(1)] = pathlib.Path(match.group(2))
        elif (match := re.match(r"\s+(/\S+) ", line)) is not None:
            loader = pathlib.Path(match.group(1))
    if loader is None or loader.name != LOADER:
        raise DoesNotFit(f"{engine} is no dynamic program of x86-64 Linux (its loader: {loader})")
    return loader, libraries


def copyrights(paths):
    """{package: text} of the Debian packages that own the files; nothing on other systems."""
    found = {}
    for path in paths:
        for name in (path, path.resolve(), pathlib.Path("/usr", *path.parts[1:])):
            done = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True, check=False) if has_dpkg() else None
            if done is None or done.returncode != 0:
                continue
            package = done.stdout.split(":")[0]
            text = pathlib.Path("/usr/share/doc", package, "copyright")
            if text.exists():
                found[package] = text.read_bytes()
            break
    return found


def has_dpkg():
    return pathlib.Path("/usr/bin/dpkg").exists()


def native_files(arguments):
    """{name in the wheel: (bytes, mode)}"""
    loader, libraries = engine_libraries(arguments.engine)
    files = {
        f"{NATIVE}/libatoll_client.so.1": (stripped(arguments.library), 0o755),
        f"{NATIVE}/atoll/atoll-engine": (stripped(arguments.launcher), 0o755),
        f"{BUNDLE}/{LOADER}": (loader.read_bytes(), 0o755),
        f"{BUNDLE}/atoll-engine": (stripped(arguments.engine), 0o755),
    }
    for name, path in libraries.items():
        files[f"{BUNDLE}/lib/{name}"] = (path.read_bytes(), 0o644)
    for package, text in copyrights([loader, *libraries.values()]).items():
        files[f"{BUNDLE}/copyright/{package}"] = (text, 0o644)
    return files


def stripped(path):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "file"
        subprocess.run(["strip", "--strip-unneeded", "-o", copy, path], check=True)
        return copy.read_bytes()


def pure_files(wheel):
    """{name: (bytes, mode)} of the pure wheel, without its RECORD, and the name of its folder dist-info."""
    files = {}
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                files[entry.filename] = (archive.read(entry), 0o644)
    (record,) = [name for name in files if name.endswith(".dist-info/RECORD")]
    del files[record]
    return {name: file for name, file in files.items() if not name.startswith(NATIVE + "/")}, record.split("/")[0]


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write(path, files, info):
    """As `pip` wants it: RECORD is the last file, and lists the others."""
    record = "".join(f"{name},{digest(data)},{len(data)}\n" for name, (data, _) in sorted(files.items()))
    ordered = sorted(files.items()) + [(f"{info}/RECORD", ((record + f"{info}/RECORD,,\n").encode(), 0o644))]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (data, mode) in ordered:
            entry = zipfile.ZipInfo(name)  # its time is 1980, whenever the wheel is made
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def assemble(arguments):
    files, info = pure_files(arguments.pure)
    tag = "py3-none-manylinux_{}_{}_x86_64".format(*needed_glibc(arguments.library))
    files.update(native_files(arguments))
    wheel, mode = files[f"{info}/WHEEL"]
    text = re.sub(r"^Root-Is-Purelib: .*$", "Root-Is-Purelib: false", wheel.decode(), flags=re.M)
    files[f"{info}/WHEEL"] = (re.sub(r"^Tag: .*$", f"Tag: {tag}", text, flags=re.M).encode(), mode)
    path = arguments.out / f"{info[:-len('.dist-info')]}-{tag}.whl"
    arguments.out.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    write(partial, files, info)
    os.replace(partial, path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("pure", "library", "engine", "launcher", "out"):
        parser.add_argument(f"--{name}", required=True, type=pathlib.Path)
    try:
        print(assemble(parser.parse_args()))
    except DoesNotFit as reason:
        print(f"wheel: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
