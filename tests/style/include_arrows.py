#!/usr/bin/env python3
"""Fails when an #include runs against the arrows of the design.

    common <- core <- storage <- server          monitoring <- server, worker
              core <- protos  <- server/rpc <- server/web ;  protos <- worker/client, cli
              core <- worker/sync <- worker/torch

Usage: include_arrows.py [ROOT]. Prints one line for each forbidden include; exit code 1 when there is one.
"""
import pathlib
import re
import sys

# What each folder may include of ours, besides itself. The longest folder that holds a file decides.
ALLOWED = {
    "common": [],
    "core": ["common"],
    "storage": ["common", "core"],
    "protos": ["common", "core"],
    "monitoring": ["common"],
    "server": ["common", "core", "storage", "monitoring"],
    "server/rpc": ["common", "core", "protos", "monitoring", "server"],
    "server/web": ["common", "core", "protos", "monitoring", "server", "server/rpc"],
    "worker": ["common", "core", "monitoring", "worker/sync", "worker/data"],
    "worker/sync": ["common", "core", "monitoring"],
    "worker/data": ["common", "core"],
    "worker/client": ["common", "core", "protos", "monitoring", "worker/sync"],
    "worker/torch": ["common", "core", "worker/sync", "worker/data"],
    "worker/app": ["common", "core", "protos", "monitoring", "worker", "worker/sync", "worker/data", "worker/client", "worker/torch"],
    "cli": ["common", "core", "protos"],
    "simulate": ["common", "core", "storage", "protos", "server", "server/rpc", "worker/sync", "worker/client"],
}

# A program's main file is where the parts are put together: it may include every folder of its side.
WIRING = {
    "server/main.cc": ["common", "core", "storage", "protos", "monitoring", "server"],
    "worker/main.cc": ["common", "core", "protos", "monitoring", "worker"],
    "cli/data_main.cc": ["common", "core", "cli", "worker/data"],
}

# A foreign type stops at its folder.
RPC = ["protos", "server/rpc", "server/web", "worker/client", "cli", "server/main.cc", "worker/main.cc"]
FOREIGN = [
    (r"rocksdb/", "RocksDB", ["storage"]),
    (r"(torch|ATen|c10|caffe2)/", "LibTorch", ["worker/torch"]),
    (r"(cuda|cuda_[a-z0-9_]+|cublas.*|nccl|nvToolsExt)\.h$|cub/|thrust/|cuda/", "CUDA", ["worker/cuda"]),
    (r".*\.pb\.h$|google/protobuf/", "protobuf", RPC + ["simulate"]),
    (r"grpc(pp|\+\+)?/", "gRPC", RPC),
    (r"prometheus/", "prometheus-cpp", ["monitoring"]),
    (r"yaml-cpp/", "yaml-cpp", ["common", "protos", "cli"]),
    (r"(spdlog|fmt)/", "spdlog", ["common"]),
    (r"openssl/", "OpenSSL", ["common"]),
    (r"zstd\.h$", "zstd", ["common"]),
    (r"curl/", "libcurl", ["server/launch"]),
    (r"microhttpd\.h$", "libmicrohttpd", ["common/http"]),
]

# core/ is mathematics and decisions: nothing that depends on when, where or on which thread it runs.
CORE_FORBIDDEN = (
    r"(thread|mutex|shared_mutex|condition_variable|atomic|future|semaphore|barrier|latch|stop_token|fstream|iostream"
    r"|filesystem|ctime|random)$|absl/(synchronization|log|random)/|absl/time/clock\.h|absl/base/log|pthread\.h"
    r"|unistd\.h|sys/|fcntl\.h|time\.h"
)
CLOCK_READ = re.compile(r"(_clock::now|absl::Now|\bclock_gettime|\bgettimeofday|\btime\s*\(\s*(NULL|nullptr|0)\s*\))")

# What atoll-simulate runs on fibers waits by common/thread.h, common/mutex.h and an injected Clock or Sleeper only. The
# exceptions have threads or clocks that a simulation has not: sockets, processes, RocksDB's own.
ON_FIBERS = ["server", "storage", "worker/sync", "worker/client", "simulate"]
OFF_FIBERS = [
    "server/main.cc", "server/rpc", "server/web", "server/launch", "storage/rocksdb",
    "simulate/main.cc",
    "server/coordinator_impl.cc",  # asks for the number of processors
]
THREADS = r"(thread|mutex|shared_mutex|condition_variable|future|stop_token|latch|barrier|semaphore)$"
OWN_TIME = re.compile(r"(steady_clock::now|absl::SleepFor|sleep_for|sleep_until)")

SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def inside(path, folder):
    return path == folder or path.startswith(folder + "/")


def deepest(path, folders):
    """The longest of `folders` that holds `path`, or None."""
    found = [f for f in folders if inside(path, f)]
    return max(found, key=len) if found else None


def source_of(path):
    """The folder whose rules a file follows. Tests mirror the sources: a test may include what its subject may."""
    if path in WIRING:
        return path
    if path.startswith("tests/"):
        path = path[len("tests/"):]
    return deepest(path, ALLOWED)


def own_target(header):
    """The folder of ours that a header belongs to, or None for a foreign one."""
    if header.startswith("atoll/v1/"):
        return "protos"
    return deepest(header, ALLOWED)


def check_arrow(path, header):
    target = own_target(header)
    source = source_of(path)
    if target is None or source is None:
        return None  # foreign headers are judged below; bench/, tests/integration and tests/fakes may use all of ours
    if source in WIRING:
        allowed = WIRING[source]
        fine = any(inside(target, f) for f in allowed)
    else:
        allowed = ALLOWED[source]
        fine = target == source or target in allowed
    if fine or header.startswith("atoll/version"):
        return None
    return f"{source} may include of ours: {', '.join(allowed) or 'nothing'}; not {target}"


def check_foreign(path, header):
    if path.startswith(("bench/", "tests/integration/", "tests/fakes/", "tests/fuzz/")):
        return None
    subject = path[len("tests/"):] if path.startswith("tests/") else path
    for pattern, name, folders in FOREIGN:
        if header != "atoll/version.h" and re.match(pattern, header) and not any(inside(subject, f) for f in folders):
            return f"{name} headers belong to {', '.join(folders)} only"
    return None


def check_core(path, line, header):
    if not path.startswith("core/"):
        return None
    if header and re.match(CORE_FORBIDDEN, header):
        return "core/ has no threads, clocks, files, logs or hidden randomness"
    if CLOCK_READ.search(line):
        return "core/ reads no clock: time is an argument"
    return None


def check_fibers(path, line, header):
    if not any(inside(path, f) for f in ON_FIBERS) or any(inside(path, f) for f in OFF_FIBERS):
        return None
    if header and re.match(THREADS, header):
        return "threads and locks come from common/thread.h and common/mutex.h, which a simulation replaces"
    if OWN_TIME.search(line):
        return "time comes from a Clock, SteadyNow or a Sleeper, which a simulation replaces"
    return None


def check_file(path, text):
    """Violations as 'path:line: include: reason'."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        header = match.group(1) if match else None
        reasons = [check_core(path, line, header), check_fibers(path, line, header)]
        if header:
            reasons += [check_arrow(path, header), check_foreign(path, header)]
        found += [f"{path}:{number}: {header or line.strip()}: {reason}" for reason in reasons if reason]
    return found


def source_files(root):
    for folder in sorted({f.split("/")[0] for f in ALLOWED} | {"bench", "tests"}):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    files = list(source_files(root))
    violations = []
    for path in files:
        name = path.relative_to(root).as_posix()
        if not name.startswith(("tests/", "bench/")) and source_of(name) is None:
            violations.append(f"{name}: no row for this folder in {pathlib.Path(__file__).name}")
        violations += check_file(name, path.read_text(encoding="utf-8"))
    for violation in violations:
        print(violation)
    print(f"{len(files)} files, {len(violations)} includes against the arrows")
    return 1 if violations or not files else 0


if __name__ == "__main__":
    sys.exit(main())
