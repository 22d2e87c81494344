#!/usr/bin/env python3
"""One table of exit codes: the same mistake gives the same code in every program and every command.

Files that are missing, no files (folders, pipes, devices), too large or without their folder give 6, and none of them is
waited for; wrong configurations 2, a port in use 3 with the option that
names it. docs/reference/cli.md has the table. No coordinator is needed.

Usage: exit_codes_test.py BIN_DIR. Exit codes: 0 all of it, 1 not (the complaints are printed).
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

from tiny_run import CONFIG

USAGE, UNAVAILABLE, FILES = 2, 3, 6
AWAY = ["--admin", "127.0.0.1:1", "--coordinator", "127.0.0.1:1", "--timeout", "0.2"]
PORTS = {"--listen": "127.0.0.1:0", "--admin-listen": "127.0.0.1:0", "--metrics-listen": "127.0.0.1:0",
         "--web-listen": "127.0.0.1:0"}


def ports(**changed):
    given = {**PORTS, **{"--" + name.replace("_", "-"): address for name, address in changed.items()}}
    return [word for pair in given.items() for word in pair]


def coordinator(*more, **changed):
    return ["atoll-coordinator", "--data-dir", "data", *ports(**changed), *more]


def generate(*more):
    return ["atoll-model", "generate", "--prompt", "a", *more]


def worker(*more):
    return ["atoll-worker", "--coordinator", "127.0.0.1:1", "--state-dir", "state", "--name", "w0", "--data", "tokens", *more]


def configurations(name):
    """Every command that reads a configuration file."""
    return [["atollctl", "config", "validate", name], ["atollctl", "config", "show", name], ["atollctl", "plan", name],
            coordinator("--config", name), generate("--config", name, "--model", "model.safetensors"),
            ["atoll-model", "eval", "--config", name, "--model", "model.safetensors", "--data", "tokens"],
            ["atoll-model", "serve", "--config", name, "--model", "model.safetensors", "--listen", "127.0.0.1:0"]]


def cases():
    """Command line, exit code, words of the message."""
    for name, code, words in [("absent.yaml", FILES, "absent.yaml"), ("folder", FILES, "folder"),
                              ("absent/run.yaml", FILES, "absent/run.yaml"), ("bad.yaml", USAGE, "nme"),
                              ("binary.yaml", USAGE, "binary.yaml")]:
        for command in configurations(name):
            yield command, code, words
    for name, words in [("pipe", "is a pipe (FIFO), not a file"), ("written.pipe", "did not end"), ("loop", "loop"),
                        ("/dev/zero", "is a device, not a file"), ("large.yaml", "larger than the limit of 1048576 bytes")]:
        for command in configurations(name):
            yield command, FILES, words
    for option in ("--tls-ca", "--token-file"):
        yield ["atollctl", *AWAY, option, "pipe", "status"], FILES, "is a pipe (FIFO), not a file"
        yield worker(option, "pipe"), FILES, "is a pipe (FIFO), not a file"
    yield generate("--config", "run.yaml", "--model", "pipe"), FILES, "is a pipe (FIFO), not a file"
    yield worker("--peer-keys", "pipe"), FILES, "is a pipe (FIFO), not a file"
    yield coordinator("--config", "run.yaml", "--import", "pipe"), FILES, "is a pipe (FIFO), not a file"
    yield coordinator("--config", "run.yaml", "--tls-cert", "pipe", "--tls-key", "pipe"), FILES, "is a pipe (FIFO), not a file"
    yield ["atollctl", *AWAY, "verify", "--confirmations", "--file", "pipe"], FILES, "is a pipe (FIFO), not a file"
    yield ["atoll-data", "tokenize", "--out", "zeros", "/dev/zero"], FILES, "/dev/zero: is a device"
    for folder in ("meta_pipe", "val_pipe"):
        yield ["atoll-data", "inspect", folder], FILES, "is a pipe (FIFO), not a file"
        yield [folder if word == "tokens" else word for word in worker()], FILES, "is a pipe (FIFO), not a file"
    for number in ("nan", "-nan", "inf", "0"):
        yield ["atollctl", "--timeout", number, "status"], USAGE, "--timeout"
        yield ["atollctl", *AWAY, "watch", "--interval", number], USAGE, "--interval"
    for number in ("nan", "inf"):
        yield coordinator("--config", "run.yaml", "--worker-grace", number), USAGE, "--worker-grace"
        yield worker("--drain-seconds", number), USAGE, "--drain-seconds"
        yield generate("--temperature", number), USAGE, "--temperature"
        yield ["atoll-data", "tokenize", "--out", "tokens2", "--val-fraction", number, "text"], USAGE, "--val-fraction"
        yield ["atollctl", "plan", "run.yaml", "--step-ms", number], USAGE, "--step-ms"
    yield ["atollctl", *AWAY, "checkpoint", "create", ""], USAGE, "is empty"
    for option in ("--tls-ca", "--token-file"):
        yield ["atollctl", *AWAY, option, "absent.pem", "status"], FILES, "absent.pem"
        yield generate("--coordinator", "127.0.0.1:1", option, "absent.pem"), FILES, "absent.pem"
        yield worker(option, "absent.pem"), FILES, "absent.pem"
    for name, code, words in [("absent.keys", FILES, "absent.keys"), ("large.yaml", FILES, "larger than the limit of 1048576 bytes"),
                              ("empty.keys", USAGE, "--peer-keys empty.keys: the file contains no key"),
                              ("bad.keys", USAGE, "--peer-keys bad.keys: line 2")]:
        yield worker("--peer-keys", name), code, words
        yield ["atollctl", *AWAY, "verify", "--confirmations", "--file", "signed.json", "--peer-keys", name], code, words
    yield coordinator("--config", "run.yaml", "--tls-cert", "absent.pem", "--tls-key", "absent.key"), FILES, "absent"
    yield coordinator("--config", "run.yaml", "--import", "absent.safetensors"), FILES, "absent.safetensors"
    yield coordinator("--config", "run.yaml", "--port-file", "absent/ports"), FILES, "absent/ports"
    yield coordinator(), USAGE, "--config FILE"
    yield ["atollctl", *AWAY, "export", "--out", "absent/model"], FILES, "--out absent/model: "
    yield ["atollctl", *AWAY, "export", "--out", "folder"], FILES, "folder"
    yield ["atollctl", *AWAY, "metrics", "export", "--out", "absent/m.csv"], FILES, "absent/m.csv"
    yield ["atollctl", *AWAY, "metrics", "export", "--out", "folder"], FILES, "folder is a folder"
    yield ["atollctl", *AWAY, "metrics", "export", "--out", "pipe"], FILES, "--out - writes to standard output"
    yield ["atollctl", *AWAY, "verify", "--confirmations", "--file", "absent.json"], FILES, "absent.json"
    yield ["absent" if word == "tokens" else word for word in worker()], FILES, "cannot read the token files"
    yield ["atoll-data", "inspect", "absent"], FILES, "absent"
    yield ["atoll-data", "adopt", "absent", "--tokenizer", "gpt2", "--vocabulary", "50257"], FILES, "absent"
    yield ["atoll-data", "tokenize", "--out", "tokens2", "absent.txt"], FILES, "absent.txt"
    yield ["atoll-data", "tokenize", "--out", "tokens", "text"], USAGE, "already"
    yield ["atoll-data", "mix", "--out", "mix", "tokens=1", "absent=1"], FILES, "absent"
    yield ["atoll-data", "mix", "--out", "mix", "tokens=1", "tokens"], USAGE, "expected FOLDER=WEIGHT"
    yield ["atoll-data", "mix", "--out", "mix", "tokens=1", "absent=0"], USAGE, "expected a number above 0"
    yield ["atoll-data", "adopt", "tokens", "--tokenizer", "gpt2", "--vocabulary", "50257"], USAGE, "already"
    yield ["atoll-data", "tokenize", "--out", "run.yaml/tokens", "run.yaml"], FILES, "a file of that name"


def lay_out(folder):
    """What the command lines name. The pipe that has a writer which never ends: its descriptor is returned."""
    (folder / "folder").mkdir()
    (folder / "run.yaml").write_text(CONFIG)
    (folder / "bad.yaml").write_text("run: {nme: x}")
    (folder / "empty.keys").write_text("# none yet\n")
    (folder / "bad.keys").write_text("# ours\nw0 abcd\n")
    (folder / "signed.json").write_text('{"run_id": "r", "confirmations": []}')
    (folder / "binary.yaml").write_bytes(bytes(range(256)) * 64)
    (folder / "large.yaml").write_text("#" * (3 << 19))
    (folder / "text").write_text("some words to train on, " * 100)
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "written.pipe")
    return os.open(folder / "written.pipe", os.O_RDWR)


def pipes_in_place_of_data(folder):
    for name, file in (("meta_pipe", "meta.json"), ("val_pipe", "val.bin")):
        shutil.copytree(folder / "tokens", folder / name)
        (folder / name / file).unlink()
        os.mkfifo(folder / name / file)


def reads_a_pipe(programs, folder):
    """A pipe with a writer that ends, as a shell's <(command), is as good as a file."""
    from_writer, to_reader = os.pipe()
    os.write(to_reader, CONFIG.encode())
    os.close(to_reader)
    done = subprocess.run([programs / "atollctl", "config", "validate", f"/dev/fd/{from_writer}"], cwd=folder, timeout=60,
                          capture_output=True, text=True, check=False, pass_fds=[from_writer])
    os.close(from_writer)
    return [] if done.returncode == 0 else [f"config validate of a pipe: {done.returncode}: {done.stderr}"]


def offline_commands_read_no_certificates(programs, folder):
    """The variables of another folder's guide name files that are not here; a command without a call does not need them."""
    elsewhere = {**os.environ, "ATOLL_TLS_CA": "certs/ca.pem", "ATOLL_TLS_CERT": "certs/a.pem", "ATOLL_TLS_KEY": "certs/a.key",
                 "ATOLL_TOKEN_FILE": "a.token"}
    complaints = []
    for command, code in ((["config", "validate", "run.yaml"], 0), (["config", "explain"], 0), (["plan", "run.yaml"], 0),
                          (["completion", "bash"], 0), ([*AWAY, "status"], FILES)):
        done = subprocess.run([programs / "atollctl", *command], cwd=folder, env=elsewhere, timeout=60, capture_output=True, text=True,
                              check=False)
        if done.returncode != code:
            complaints.append(f"{' '.join(command)} with variables of another folder: {done.returncode}: {done.stderr}")
    return complaints


def imports_leave_no_run(programs, folder):
    """A file that cannot be imported is refused before the data directory is made."""
    complaints = []
    for name in ("absent.safetensors", "folder", "text", "pipe"):
        done = subprocess.run([programs / "atoll-coordinator", *coordinator("--config", "run.yaml", "--import", name)[1:]],
                              cwd=folder, timeout=60, capture_output=True, text=True, check=False)
        if done.returncode not in (USAGE, FILES) or name not in done.stderr or (folder / "data").exists():
            complaints.append(f"--import {name}: {done.returncode}, data directory {(folder / 'data').exists()}: {done.stderr}")
        shutil.rmtree(folder / "data", ignore_errors=True)
    return complaints


def taken_ports():
    """A port that somebody has: the option is named, and an address that is free."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for option in ("listen", "admin_listen", "metrics_listen", "web_listen", "health_listen"):
            name = "--" + option.replace("_", "-")
            yield coordinator("--config", "run.yaml", **{option: address}), UNAVAILABLE, f"{name}: {address} is in use"
            yield coordinator("--config", "run.yaml", **{option: address}), UNAVAILABLE, f"is free: {name} 127.0.0.1:"
        yield worker("--metrics-listen", address), UNAVAILABLE, f"--metrics-listen: {address} is in use"
    twice = coordinator("--config", "run.yaml", listen=address, admin_listen=address)
    yield twice, USAGE, f"--listen and --admin-listen are both {address}"


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    complaints, tried = [], 0
    with tempfile.TemporaryDirectory(prefix="atoll-codes-") as name:
        folder = pathlib.Path(name)
        writer = lay_out(folder)
        subprocess.run([programs / "atoll-data", "tokenize", "--out", "tokens", "text"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        pipes_in_place_of_data(folder)
        complaints += reads_a_pipe(programs, folder)
        complaints += offline_commands_read_no_certificates(programs, folder)
        complaints += imports_leave_no_run(programs, folder)
        for given in (cases, taken_ports):
            for command, code, words in given():
                if not (programs / command[0]).exists():
                    continue  # built without LibTorch, there is no worker
                done = subprocess.run([programs / command[0], *command[1:]], cwd=folder, capture_output=True, text=True,
                                      timeout=60, check=False, stdin=subprocess.DEVNULL)
                said = done.stderr + done.stdout
                tried += 1
                if done.returncode != code or words not in said:
                    complaints.append(f"{' '.join(command)}: exit code {done.returncode}, expected {code} and '{words}': "
                                      f"{said.strip()[-500:]}")
                shutil.rmtree(folder / "data", ignore_errors=True)
        os.close(writer)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{tried} command lines, {len(complaints)} complaints")
    return 1 if complaints or tried < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
