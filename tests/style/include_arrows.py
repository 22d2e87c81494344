#!/usr/bin/env python3
"""Fails when an #include runs against the arrows of the design.

    common <- core <- core/protocol <- storage <- server's rooms       monitoring <- server, worker
              core <- tokenizer <- worker/data
              core <- core/hf <- storage/weights <- server/opening, worker/app, cli
              core <- protos  <- server/rpc <- server/web ;  protos <- client/rpc, cli ;  storage <- cli
              core <- protos  <- client/parameters <- client/rpc, cli, worker/app
              core <- client/sync <- client/rpc, client/metrics <- client/setup <- client/engine <- (a socket) <- client/library
                      client/sync <- worker/torch <- worker/models <- worker/app

Usage: include_arrows.py [ROOT]. Prints one line for each forbidden include; exit code 1 when there is one.
"""
import pathlib
import re
import sys

# What each folder may include of ours, besides itself. The longest row that holds a file decides. A row without a suffix
# is a folder or a unit: "server/views" is views.h and views.cc. Units with a row of their own stand on another step than
# their folder. No row may reach itself through others: what is allowed has no cycle, and a test holds that.
CORE = ["common", "core", "core/protocol"]
# Models in files.
WEIGHTS = ["core/hf", "storage/weights"]

# The coordinator's rooms, from the lowest step to the highest.
SERVER_STEPS = {
    # What it says: the calls, the views, why a call is rejected.
    "server/rejection": ["common", "core"],
    "server/storage_rejection": ["common", "server/rejection"],
    "server/views": CORE,
    # Whether this machine and this configuration can hold a model.
    "server/new_model": CORE,
    "server/all_evaluations": ["server/views"],
    "server/access": CORE,
    "server/launch": ["common"],
    "server/events": CORE + ["storage", "server/views"],
    "server/publish": CORE + ["storage", "server/views", "server/events"],
    "server/coordinator": CORE + ["server/views", "server/publish"],
    "server/create_coordinator": CORE + ["storage", "server/coordinator", "server/events", "server/launch"],
    "server/admin/admin_control": CORE + ["server/views", "server/launch"],
    # What is true now: options, rounds, members, the run. Reads no clock and calls nobody.
    "server/run/config_snapshot": CORE,
    "server/run/run_configs": CORE + ["server/run/config_snapshot"],
    "server/rounds": CORE + ["storage", "server/rejection", "server/publish", "server/run/config_snapshot", "server/run/run_configs"],
    "server/members": CORE + ["storage", "server/rejection", "server/views", "server/new_model", "server/coordinator", "server/events", "server/rounds",
                              "server/run/config_snapshot", "server/run/run_configs"],
    "server/run": CORE + ["storage", "server/rejection", "server/storage_rejection", "server/views", "server/coordinator",
                          "server/admin/admin_control", "server/events", "server/publish", "server/run/config_snapshot", "server/run/run_configs",
                          "server/rounds", "server/members"],
    # What makes things happen, on the shared context of a run.
    "server/coordinator_context": CORE + ["storage", "server/create_coordinator", "server/events", "server/publish", "server/run"],
    "server/publish/version_writer": CORE + ["storage", "server/coordinator_context", "server/publish", "server/rounds"],
    "server/rounds/round_driver": CORE + ["storage", "server/coordinator_context", "server/publish/version_writer", "server/rounds"],
    "server/opening": CORE + WEIGHTS + ["storage", "server/new_model", "server/create_coordinator", "server/members", "server/rounds", "server/run/config_snapshot", "server/run/run_configs"],
    "server/ingest": CORE + ["storage", "server/new_model", "server/rejection", "server/storage_rejection", "server/coordinator",
                             "server/coordinator_context", "server/rounds", "server/run"],
    "server/admin": CORE + ["storage", "server/storage_rejection", "server/views", "server/all_evaluations",
                            "server/coordinator_context", "server/admin/admin_control", "server/events", "server/members",
                            "server/opening", "server/publish", "server/rounds", "server/rounds/round_driver", "server/run"],
    # Joins the rooms: the implementation of coordinator.h.
    "server": CORE + ["storage", "server/new_model", "server/rejection", "server/storage_rejection", "server/views", "server/coordinator",
                      "server/create_coordinator", "server/coordinator_context", "server/admin", "server/admin/admin_control",
                      "server/events", "server/ingest", "server/members", "server/opening", "server/publish", "server/rounds",
                      "server/rounds/round_driver", "server/run"],
    # How the outside reaches it. None of these sees a round, a member or the run.
    "server/metrics": CORE + ["monitoring", "server/views", "server/events", "server/launch"],
    "server/program": CORE + ["storage", "server/access", "server/admin/admin_control", "server/launch", "server/members"],
    "server/rpc": CORE + ["protos", "server/rejection", "server/views", "server/coordinator", "server/access",
                          "server/admin/admin_control", "server/publish"],
    "server/web": CORE + ["protos", "server/views", "server/all_evaluations", "server/coordinator", "server/access",
                          "server/admin/admin_control", "server/rpc"],
}

# What every worker stands on. The library is in the caller's process and the engine in its own: all they share is ipc.
CLIENT_STEPS = {
    "client/sync": CORE,
    "client/parameters": CORE + ["protos"],
    "client/rpc": CORE + ["protos", "client/parameters", "client/sync"],
    "client/metrics": CORE + ["protos", "monitoring", "client/sync"],
    "client/setup": CORE + ["protos", "client/sync", "client/rpc", "client/metrics"],
    "client/ipc": ["client/include"],
    "client/engine": CORE + ["protos", "client/sync", "client/rpc", "client/metrics", "client/setup", "client/ipc",
                             "client/include"],
    "client/include": [],
    "client/example": ["client/include"],
    "client/library": ["client/include", "client/ipc"],
}

WORKER_STEPS = {
    "worker/data": CORE + ["tokenizer"],
    "worker/models": CORE + ["worker/torch"],
    # The executor of its kernels on the processor runs threads as fibers.
    "worker/cuda": CORE + ["simulate/fiber"],
    "worker/torch": CORE + ["client/sync", "worker/data", "worker/cuda"],
    "worker/island": CORE + ["client/ipc", "client/sync", "worker/data", "worker/models", "worker/torch"],
    "worker": CORE,
    "worker/app": CORE + WEIGHTS + ["protos", "client/parameters", "client/sync", "client/rpc", "client/metrics", "client/setup", "tokenizer", "worker/data", "worker/models",
                          "worker/torch", "worker/island"],
}

ALLOWED = {
    "common": [],
    "core": ["common"],
    "core/protocol": ["common", "core"],
    "core/hf": ["common", "core"],
    "storage/weights": ["common", "core", "core/hf"],
    "tokenizer": ["common", "core"],
    "storage": CORE,
    "protos": CORE,
    "monitoring": ["common"],
    **SERVER_STEPS,
    **CLIENT_STEPS,
    **WORKER_STEPS,
    "cli": CORE + WEIGHTS + ["protos", "storage", "client/parameters"],
    "python": ["client/include"],
    "simulate/fiber": [],
    "simulate": CORE + ["simulate/fiber", "storage", "protos", "server/coordinator", "server/create_coordinator", "server/admin/admin_control",
                        "server/rpc", "client/sync", "client/rpc"],
}

# A program's main file is where the parts are put together: it may include every folder of its side.
WIRING = {
    "server/main.cc": ["common", "core", "core/protocol", "storage", "protos", "monitoring", "server"],
    "worker/main.cc": ["common", "core", "core/protocol", "protos", "client/setup", "worker"],
    "worker/model_main.cc": ["common", "core", "protos", "worker"],
    "worker/data_main.cc": ["common", "core", "worker/data"],
}

# Tests of these rooms try them in a whole run.
WHOLE_RUN = {
    "tests/server/": ["server", "server/all_evaluations", "server/launch", "server/run/config_snapshot",
                      "server/run/run_configs"] + SERVER_STEPS["server"],
    "tests/client/library/": ["common", "core"],
}

# A foreign type stops at its folder.
RPC = ["protos", "server/rpc", "server/web", "client/parameters", "client/rpc", "cli", "server/main.cc", "worker/main.cc"]
FOREIGN = [
    (r"rocksdb/", "RocksDB", ["storage"]),
    (r"(torch|ATen|c10|caffe2)/", "LibTorch", ["worker/torch", "worker/models", "worker/island"]),
    (r"(cuda|cuda_[a-z0-9_]+|cublas.*|nccl|nvToolsExt)\.h$|cub/|thrust/|cuda/", "CUDA", ["worker/cuda"]),
    (r".*\.pb\.h$|google/protobuf/", "protobuf", RPC + ["simulate"]),
    (r"grpc(pp|\+\+)?/", "gRPC", RPC),
    (r"prometheus/", "prometheus-cpp", ["monitoring"]),
    (r"yaml-cpp/", "yaml-cpp", ["common", "protos", "cli"]),
    (r"(spdlog|fmt)/", "spdlog", ["common"]),
    (r"openssl/", "OpenSSL", ["common"]),
    (r"zstd\.h$", "zstd", ["common", "worker/data/input"]),
    (r"simdjson\.h$", "simdjson", ["worker/data/input"]),
    (r"curl/", "libcurl", ["server/launch"]),
    (r"(pybind11|nanobind)/|Python\.h$", "Python's", ["python"]),
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
ON_FIBERS = ["server", "storage", "client/sync", "client/rpc", "simulate"]
OFF_FIBERS = [
    "server/main.cc", "server/rpc", "server/web", "server/launch", "storage/rocksdb",
    "simulate/main.cc",
    "server/coordinator_impl.cc",  # asks for the number of processors
]
THREADS = r"(thread|mutex|shared_mutex|condition_variable|future|stop_token|latch|barrier|semaphore)$"
OWN_TIME = re.compile(r"(steady_clock::now|absl::SleepFor|sleep_for|sleep_until)")

PLAIN = ["client/include", "client/example", "client/ipc", "client/library"]

SUFFIXES = {".h", ".hpp", ".cc", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def inside(path, folder):
    """Whether a folder, a unit without its suffix, or a file named in full holds `path`."""
    return path == folder or path.startswith(folder + "/") or path in (folder + ".h", folder + ".hpp", folder + ".cc")


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
    if header in ("atoll/client.h", "atoll/client.hpp"):
        return "client/include"
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
        allowed = ALLOWED[source] + next((also for folder, also in WHOLE_RUN.items() if path.startswith(folder)), [])
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


def check_plain(path, header):
    """What goes into the caller's process carries nothing that could meet another copy of itself there."""
    if not any(inside(path, f) for f in PLAIN) or own_target(header) or header == "atoll/version.h":
        return None
    if "/" in header and not header.startswith(("sys/", "linux/")):
        return f"{', '.join(PLAIN)} use the standard library and the system's headers only"
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
            reasons += [check_arrow(path, header), check_foreign(path, header), check_plain(path, header)]
        found += [f"{path}:{number}: {header or line.strip()}: {reason}" for reason in reasons if reason]
    return found


def cycle_of(allowed):
    """Rows that reach themselves by what they may include, as a list that ends where it begins; [] when there are none."""
    done = set()

    def walk(row, way):
        if row in way:
            return way[way.index(row):] + [row]
        if row in done:
            return []
        for target in allowed[row]:
            found = walk(target, way + [row])
            if found:
                return found
        done.add(row)
        return []

    return next((found for row in allowed if (found := walk(row, []))), [])


def missing_units(root, allowed):
    """Rows of single units whose files are gone: the row would hold nothing."""
    return [row for row in sorted(allowed) if not (root / row).is_dir() and not (root / (row + ".h")).exists()]


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
    if cycle_of(ALLOWED):
        violations.append(f"the rows allow a cycle: {' -> '.join(cycle_of(ALLOWED))}")
    violations += [f"{row}: no such folder or unit; take its row out of {pathlib.Path(__file__).name}"
                   for row in missing_units(root, SERVER_STEPS)]
    for violation in violations:
        print(violation)
    print(f"{len(files)} files, {len(violations)} includes against the arrows")
    return 1 if violations or not files else 0


if __name__ == "__main__":
    sys.exit(main())
