"""Honest connections that do nothing during an attack: each made one call before, and must not be ended for what others do."""
import struct
import time

from attacks import DATA, END_HEADERS, HEADERS, PING, PREFACE, SETTINGS, connect, frame, request_headers
from coordinator import METHOD

GOAWAY = 7
END_STREAM = ACK = 1
PATHS = {"data": METHOD + "Heartbeat", "admin": "/atoll.v1.Admin/GetStatus"}


class Bystander:
    """One HTTP/2 connection with one empty call; whatever the answer, it is one."""

    def __init__(self, address, path):
        self.began = time.monotonic()
        self.answered_after = None
        self.ended = None  # why
        self.seen = bytearray()
        self.connection = connect(address)
        self.connection.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, END_HEADERS, 1, request_headers(path)) +
                                frame(DATA, END_STREAM, 1, bytes(5)))
        self.connection.setblocking(False)

    def look(self):
        try:
            while self.ended is None:
                data = self.connection.recv(1 << 16)
                self.seen += data
                if not data:
                    self.ended = "hung up"
        except BlockingIOError:
            pass
        except OSError as error:
            self.ended = str(error)
        while len(self.seen) >= 9 and len(self.seen) >= (size := 9 + int.from_bytes(self.seen[:3], "big")):
            self._take(self.seen[3], self.seen[4], struct.unpack_from(">I", self.seen, 5)[0], bytes(self.seen[9:size]))
            del self.seen[:size]

    def _take(self, kind, flags, stream, payload):
        if kind == GOAWAY:
            self.ended = f"GOAWAY {payload[8:].decode(errors='replace')!r}"
        elif kind in (SETTINGS, PING) and not flags & ACK:
            self._answer(frame(kind, ACK, 0, payload if kind == PING else b""))
        elif kind == HEADERS and stream == 1 and flags & END_STREAM:
            self.answered_after = time.monotonic() - self.began

    def _answer(self, data):
        try:
            self.connection.sendall(data)
        except OSError as error:
            self.ended = str(error)

    def close(self):
        self.connection.close()


class Bystanders:
    def __init__(self, coordinator, of_each_port):
        self.coordinator = coordinator
        self.old = [Bystander(coordinator.address(port), path) for port, path in PATHS.items() for _ in range(of_each_port)]
        self.new = []
        coordinator.wait_for(lambda: self.look() or all(each.answered_after is not None for each in self.old), 60,
                             "the calls before the attack")

    def look(self):
        for each in self.old + self.new:
            each.look()

    def newcomers(self):
        """One more at each port, at most one a second."""
        if self.new and time.monotonic() - self.new[-1].began < 1:
            return
        for port, path in PATHS.items():
            try:
                self.new.append(Bystander(self.coordinator.address(port), path))
            except OSError as error:
                raise RuntimeError(f"a new connection to the {port} port: {error}") from error

    def complaints(self, served_within_s):
        """After the attack."""
        deadline = time.monotonic() + served_within_s
        while any(each.answered_after is None and each.ended is None for each in self.new) and time.monotonic() < deadline:
            self.look()
            time.sleep(0.01)
        self.look()
        found = []
        for name, members in (("old", self.old), ("new", self.new)):
            ended = [each.ended for each in members if each.ended]
            if ended:
                found.append(f"{len(ended)} of {len(members)} {name} connections of bystanders were ended: {ended[0]}")
            late = [each for each in members if (each.answered_after or served_within_s + 1) > served_within_s]
            if late:
                found.append(f"{len(late)} of {len(members)} calls of {name} bystanders were not answered in {served_within_s} s")
        return found

    def close(self):
        for each in self.old + self.new:
            each.close()
