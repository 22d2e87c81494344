"""The archive of a recorded run, and what the programs report of it."""
import hashlib
import json
import pathlib
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from hand_run import HandRun  # noqa: E402  (it lies in a folder beside)

PATIENCE_S = 120
OPERATOR = "operator"  # the author of changes, in place of the login name
EXPECTATIONS, TOKENS = "expectations.json", "tokens"
ENTRIES = ("run.yaml", "coordinator", TOKENS, EXPECTATIONS)  # and a state directory for each worker


def pack(folder, archive):
    """Without owners and times, so that the archive says nothing about the machine."""
    def plain(entry):
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for path in sorted(folder.iterdir()):
            if path.name in ENTRIES or path.name.startswith("state-"):
                tar.add(path, arcname=path.name, filter=plain)


def unpack(archive, folder):
    folder.mkdir(parents=True)
    with tarfile.open(archive, "r:xz") as tar:
        # Python before 3.11.4 has no filters.
        tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


def hex_of(content_hash):
    return f"{int(content_hash['high']):016x}{int(content_hash['low']):016x}"


def kept_only_by_workers(expected):
    """By worker the contributions to a head that the coordinator has not accepted."""
    accepted = {(c["fragment"], c["base"], c["worker"]) for c in expected["records"]["contribution"]}
    heads = {head["fragment"]: head["version"] for head in expected["records"]["head"]}
    kept = {name: [p for p in pushes if p["base"] == heads[p["fragment"]] and (p["fragment"], p["base"], name) not in accepted]
            for name, pushes in expected["pending"].items()}
    return {name: pushes for name, pushes in kept.items() if pushes}


def contributors_of(record):
    return [[c["worker"], c["base"]] for c in record["contributions"]]


class RecordedRun(HandRun):
    """Programs on an unpacked folder."""

    def __init__(self, folder, programs):
        super().__init__(folder, programs, (pathlib.Path(folder) / "run.yaml").read_text())
        self.credentials = ("--user", OPERATOR)

    def start_recorded_workers(self, expected):
        """First the workers with an unsent contribution, until it is accepted. The others would move the head too far beyond its base."""
        first = kept_only_by_workers(expected)
        for name, pushes in first.items():
            self.start_worker(name, self.folder / TOKENS)
        self.wait_for(lambda: all(int(self.workers()[name]["contributions_accepted"]) >= len(pushes) for name, pushes in first.items()),
                      PATIENCE_S, f"the kept contributions of {list(first)}")
        for name in expected["pending"].keys() - first.keys():
            self.start_worker(name, self.folder / TOKENS)

    def versions(self):
        return {int(fragment["id"]): int(fragment["version"]) for fragment in self.status()["fragments"]}

    def must(self, *arguments):
        """What atollctl prints; RuntimeError when it fails."""
        text = self.ctl(*arguments)
        if text is None:
            raise RuntimeError(f"atollctl {' '.join(map(str, arguments))}: {self.complaint}")
        return text

    def await_stored(self):
        """The status, once the tensors of every head are stored."""
        def all_stored():
            fragments = self.status()["fragments"]
            return all(int(f["stored_version"]) == int(f["version"]) for f in fragments)
        self.wait_for(all_stored, PATIENCE_S, "the tensors of the heads to be stored")
        return self.status(1000)

    def await_versions(self, wanted, look=lambda: True):
        """Until each fragment has the wanted version. `look` may raise."""
        def reached():
            look()
            now = self.versions()
            return all(now[fragment] >= version for fragment, version in wanted.items())
        self.wait_for(reached, PATIENCE_S, f"versions {wanted}")

    def verdicts(self):
        """Fragment, version and verdict of every retained version. RuntimeError when a version differs."""
        lines = [json.loads(line) for line in self.must("verify", "--json").splitlines() if line.strip()]
        return sorted([int(line["fragment"]), int(line["version"]), line["verdict"]] for line in lines)

    def confirmations(self, fragment):
        """The signatures of a fragment's published hashes, after atollctl has checked them."""
        out = self.folder / f"confirmations-{fragment}.json"
        out.unlink(missing_ok=True)
        self.must("verify", "--confirmations", "--fragment", str(fragment), "--export", out)
        return json.loads(out.read_text())

    def export_sha256(self):
        out = self.folder / "export.safetensors"
        out.unlink(missing_ok=True)
        self.must("export", "--out", out)
        return hashlib.sha256(out.read_bytes()).hexdigest()


def fragment_of(status):
    return {"version": int(status["version"]), "elements": int(status["elements"]), "published": hex_of(status["published"]),
            "arrived": sorted(status["arrived"])}


def worker_of(name, worker):
    return {"name": name, "role": worker["role"], "incarnation": int(worker["incarnation"]), "partition": worker["data"]["partition"],
            "samples_consumed": int(worker["data"]["samples_consumed"])}


def round_of(line):
    return {"fragment": int(line["fragment"]), "version": int(line["version"]), "contributions": int(line["contributions"]),
            "train_loss": line["train_loss"], "tokens": int(line["tokens"]), "committed_tokens": int(line["committed_tokens"]),
            "payload_bytes": int(line["payload_bytes"]), "close_reason": line["close_reason"]}


def decimal(epoch):
    """An epoch as the programs that recorded the archives printed it."""
    return str(int(epoch, 16))


def observe(run, expected):
    """What the programs report of a run that was just opened. The names are this test's own: when a command renames a field, this
    function changes and the archives stay. Later events than the recorded ones are left out."""
    run.await_versions({int(fragment): version for fragment, version in expected["settled"].items()})
    status = run.await_stored()
    events = expected["records"]["count"]["event"]
    return {
        "run": {"id": status["run_id"], "name": status["run_name"], "epoch": decimal(status["epoch"])},
        "config_version": int(status["config_version"]),
        "committed_tokens": int(status["committed_tokens"]),
        "parameters": int(status["parameters"]),
        "fragments": [fragment_of(fragment) for fragment in status["fragments"]],
        "rounds": sorted((round_of(line) for line in status["rounds"]), key=lambda one: (one["fragment"], one["version"])),
        "evaluations": [[int(e["version"]), e["loss"]] for e in status["evaluations"]],
        "members": [worker_of(name, worker) for name, worker in sorted(run.workers().items())],
        "configurations": [{name: config[name] for name in ("version", "unix_nanos", "author", "changes", "config")}
                           for config in json.loads(run.must("config", "history", "--json"))["configs"]],
        "checkpoints": [{name: checkpoint[name] for name in ("name", "versions", "committed_tokens", "bytes", "damage")}
                        | {"epoch": decimal(checkpoint["epoch"])}
                        for checkpoint in json.loads(run.must("checkpoint", "list", "--check", "--json"))["checkpoints"]],
        "events": [[int(e["sequence"]), e["kind"], e["worker"], int(e["fragment"]), int(e["version"])]
                   for e in run.events()[:events]],
        "confirmations": [run.confirmations(int(fragment["id"])) for fragment in status["fragments"]],
        "export_sha256": run.export_sha256(),
        "verdicts": run.verdicts(),
    }
