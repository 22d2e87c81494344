"""A coordinator of the real program, a well-behaved client of it, and what is measured of its process."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import grpc

import wire

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import metrics_page  # noqa: E402
import waiting  # noqa: E402

METHOD = "/atoll.v1.Coordinator/"
MODEL_VALUES = 2 << 20  # 8 MiB of float32: eight chunks of a seed
CHUNK = 1 << 20


def config(codec, budget_mib=64, joins_per_s=50, max_workers=300):
    return f"""run: {{name: hostile, workers: 2, rounds: 100}}
model: {{gpt: {{layers: 1, heads: 2, width: 32, context: 16, vocabulary: 256}}}}
data: {{tokenizer: bytes, mode: local}}
inner: {{steps: 4, learning_rate: 0.01, batch: 2}}
round: {{deadline_s: 600, minimum: 1, start_workers: 1, lease_s: 300}}
codec: {{push: {codec}, pull_delta: none, allow_momentum_with_topk: true}}
evaluation: {{every: 0}}
checkpoint: {{shards: 1}}
limits: {{contribution_budget_mib: {budget_mib}, joins_per_s: {joins_per_s}, max_workers: {max_workers}}}
"""


class Coordinator:
    def __init__(self, folder, programs, codec="fp32", open_files=4096, max_connections=600,
                 budget_mib=64, more=(), enter=None, **limits):
        self.folder, self.programs = pathlib.Path(folder), pathlib.Path(programs)
        self.folder.mkdir(parents=True)
        (self.folder / "run.yaml").write_text(config(codec, budget_mib, **limits))
        arguments = ["--config", self.folder / "run.yaml", "--data-dir", self.folder / "data", "--listen", "127.0.0.1:0",
                     "--admin-listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                     "--port-file", self.folder / "ports.json", "--log-format", "json",
                     "--max-connections", str(max_connections), *more]

        # No preexec_fn: with it Python forks, and on Debian 13 gRPC then waits for ever for its threads.
        limited = ["prlimit", f"--nofile={open_files}:{open_files}", "setpriv", "--pdeathsig", "KILL"]
        if enter is not None:
            limited = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', enter, *limited]
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [*limited, self.programs / "atoll-coordinator", *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.wait_for((self.folder / "ports.json").exists, 60, "the coordinator to serve")
        ports = json.loads((self.folder / "ports.json").read_text())
        self.data, self.admin, self.metrics, self.health = (ports[port] for port in ("data", "admin", "metrics", "health"))

    def wait_for(self, done, seconds, what):
        waiting.wait_for(self.process, self.log_end, done, seconds, what)

    def log_end(self):
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    def stop(self):
        self.process.terminate()
        return self.process.wait(60)

    def address(self, port="data"):
        host, number = getattr(self, port).rsplit(":", 1)
        return host, int(number)

    def channel(self, port="data", options=()):
        # A connection of its own for each channel.
        return grpc.insecure_channel(getattr(self, port), options=[("grpc.use_local_subchannel_pool", 1), *options])

    def _proc(self, name):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+)", text, re.M).group(1))

    def forget_peak(self):
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak_mib(self):
        """The most it has held since forget_peak."""
        return self._proc("VmHWM") / 1024

    def rss_mib(self):
        """Without pages of files, which the kernel takes back at need."""
        return self._proc("RssAnon") / 1024

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def threads(self):
        return self._proc("Threads")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def counters(self):
        """Series of what is counted, by name with labels."""
        lines = metrics_page.page_text(self.metrics).splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}

    def atollctl(self, *arguments):
        done = subprocess.run([self.programs / "atollctl", "--timeout", "20", "--admin", self.admin, *arguments, "--json"],
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"atollctl {' '.join(arguments)}: {done.stderr.strip()}; {self.log_end()}")
        return json.loads(done.stdout)

    def status(self):
        return self.atollctl("status")


def call(channel, method, request, timeout=20):
    """A unary call of bytes."""
    return channel.unary_unary(METHOD + method)(request, timeout=timeout)


def call_patiently(channel, method, request, seconds=60):
    """Again while the answer is to come back, as workers do."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return call(channel, method, request)
        except grpc.RpcError as error:
            come_back = error.code() in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
            if not come_back or time.monotonic() > deadline:
                raise
            time.sleep(0.3)


def push(channel, messages, timeout=60):
    return channel.stream_unary(METHOD + "Push")(iter(messages), timeout=timeout)


class GoodWorker:
    """Joins, seeds when it is to, pulls and contributes zeros: every version equals the one before."""

    def __init__(self, coordinator, name="good", values=MODEL_VALUES, seconds=60):
        self.manifest, self.hash = wire.manifest("w", [values])
        self.coordinator, self.name, self.values = coordinator, name, values
        # From an address of its own, as a worker on another machine has.
        self.channel = coordinator.channel(options=[("grpc.enable_retries", 0)])
        self.member = self.join(seconds)

    def join(self, seconds=60):
        request = wire.join_request(self.name, b"s" * 32, self.hash)
        return wire.Member(self.name, call_patiently(self.channel, "Join", request, seconds))

    def seed(self):
        zeros = bytes(CHUNK)
        crc = wire.crc32c(zeros)

        def messages():
            yield wire.field(1, wire.field(1, self.member.reference) + wire.field(2, self.manifest))
            for offset in range(0, self.values * 4, CHUNK):
                yield (wire.field(2, 0) + wire.field(3, offset) + wire.field(4, zeros) + wire.fixed32(5, crc))

        self.channel.stream_unary(METHOD + "SeedParameters")(messages(), timeout=60)

    def heartbeat(self):
        call(self.channel, "Heartbeat", wire.field(1, self.member.reference))

    def pull(self):
        """The head: its version, after all of it has come."""
        request = wire.field(1, self.member.reference) + wire.field(2, 0)
        version = received = 0
        for message in self.channel.unary_stream(METHOD + "Pull")(request, timeout=60):
            fields = wire.parse(message)
            if 1 in fields:
                header = wire.parse(fields[1][0])
                version, expected = header.get(3, [0])[0], header[6][0]
            received += sum(len(data) for data in fields.get(3, []))
        if received != expected:
            raise RuntimeError(f"{received} bytes came of {expected}")
        return version

    def push_zeros(self, base):
        """One float32 contribution."""
        zeros = bytes(CHUNK)
        crc = wire.crc32c(zeros)
        payload_crc = 0
        for _ in range(self.values * 4 // CHUNK):
            payload_crc = wire.crc32c(zeros, payload_crc)
        header = wire.push_header(self.member, 1, self.values * 4, payload_crc, base)
        push(self.channel, [header] + [wire.chunk(at, zeros, crc) for at in range(0, self.values * 4, CHUNK)])

    def still_served(self):
        """All that a worker asks for; how long it took."""
        began = time.monotonic()
        self.heartbeat()
        self.pull()
        return time.monotonic() - began
