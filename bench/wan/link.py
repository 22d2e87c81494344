"""Two hosts in network namespaces of this machine, joined by a user-space link with delay, loss and a bandwidth.

No kernel module is needed (tc's netem is not in every kernel): the namespaces' tap interfaces hang on two VDE
switches, and wirefilter, between the switches, delays, drops and holds back what passes. One core carries some
600 Mbit/s. A link has names of its own, so that several can stand side by side.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time

PACKAGES = {"ip": "iproute2", "vde_switch": "vde-switch", "vde_plug2tap": "vde2", "wirefilter": "vde-wirefilter"}
ADDRESSES = {"a": "10.78.0.1", "b": "10.78.0.2"}
ALLOWED = pathlib.Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
ALLOWING = threading.Lock()


def missing_packages():
    return sorted({package for tool, package in PACKAGES.items() if shutil.which(tool) is None})


def congestion_controls():
    """What the kernel offers."""
    return pathlib.Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def run(*command):
    subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


class Link:
    """Hosts "a" and "b". A link without limits, until `shape` is called. To be used as a context.

    With `ahead`, what carries the packets and what is started by way of `on` goes before everything else that runs
    here (SCHED_RR): other hosts' processors, and the wire between, do not wait for what else this machine does.
    """

    def __init__(self, number, ahead=False):
        self.before = ["chrt", "--rr", "1"] if ahead else []
        self.name = f"wan{os.getpid()}n{number}"
        self.tap = {side: f"w{side}{os.getpid() % 1000000}n{number}" for side in "ab"}
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-link-"))
        self.spaces = []

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def build(self):
        for side in "ab":
            switch = self.folder / f"switch-{side}"
            run(*self.before, "vde_switch", "-s", switch, "-d", "-M", self.folder / f"manage-{side}", "-p", self.pid_file(f"switch-{side}"))
            run(*self.before, "vde_plug2tap", "-s", switch, "-d", "-P", self.pid_file(f"tap-{side}"), self.tap[side])
        deadline = time.time() + 10
        while not all(pathlib.Path("/sys/class/net", tap).exists() for tap in self.tap.values()):
            if time.time() > deadline:
                raise RuntimeError("the tap interfaces do not appear")
            time.sleep(0.05)
        for side in "ab":
            space = self.space(side)
            run("ip", "netns", "add", space)
            self.spaces.append(space)
            run("ip", "link", "set", self.tap[side], "netns", space)
            run("ip", "-n", space, "addr", "add", f"{ADDRESSES[side]}/24", "dev", self.tap[side])
            run("ip", "-n", space, "link", "set", self.tap[side], "up")
            run("ip", "-n", space, "link", "set", "lo", "up")
        run(*self.before, "wirefilter", "-v", f"{self.folder}/switch-a:{self.folder}/switch-b", "-M", self.folder / "filter",
            "--daemon", "--pidfile", self.pid_file("filter"))

    def __exit__(self, *_):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], stderr=subprocess.DEVNULL)
        for name in ("filter", "tap-a", "tap-b", "switch-a", "switch-b"):
            try:
                os.kill(int(self.pid_file(name).read_text().strip("\0\n ")), 15)
            except (OSError, ValueError):
                pass
        shutil.rmtree(self.folder, ignore_errors=True)

    def space(self, side):
        return f"{self.name}{side}"

    def pid_file(self, name):
        return self.folder / f"{name}.pid"

    def on(self, side, *command):
        """The command line that runs `command` on that host."""
        return [*self.before, "ip", "netns", "exec", self.space(side), *map(str, command)]

    def use_congestion_control(self, name):
        # A namespace may choose only among those that the machine allows to everybody: ours is, for this moment.
        with ALLOWING:
            before = ALLOWED.read_text()
            ALLOWED.write_text(f"{before.strip()} {name}")
            try:
                for side in "ab":
                    run(*self.on(side, "sysctl", "-q", "-w", f"net.ipv4.tcp_congestion_control={name}"))
            finally:
                ALLOWED.write_text(before)

    def shape(self, delay_ms, loss_percent, mbit, buffer_ms):
        """The same both ways. A packet that would wait longer than buffer_ms for the bandwidth is dropped."""
        rate = mbit * 1e6 / 8
        for order in (f"chanbufsize {int(rate * (delay_ms + buffer_ms) / 1e3)}", f"bandwidth {int(rate)}",
                      f"delay {delay_ms}", f"loss {loss_percent}"):
            self.order(order)

    def order(self, text):
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(5)
            control.connect(str(self.folder / "filter"))
            self.read_until(control, b"VDEwf")  # the prompt
            control.sendall(text.encode() + b"\n")
            answer = self.read_until(control, b"1000 Success", b"1022", b"1038")
            if b"1000 Success" not in answer:
                raise RuntimeError(f"wirefilter refuses '{text}': {answer!r}")

    @staticmethod
    def read_until(control, *endings):
        text = b""
        while not any(ending in text for ending in endings):
            more = control.recv(4096)
            if not more:
                break
            text += more
        return text

    def counters(self):
        """Bytes that host b has sent and received, headers and repetitions included."""
        out = subprocess.run(["ip", "-n", self.space("b"), "-s", "-j", "link", "show", "dev", self.tap["b"]],
                             capture_output=True, check=True).stdout
        stats = json.loads(out)[0]["stats64"]
        return stats["tx"]["bytes"], stats["rx"]["bytes"]
