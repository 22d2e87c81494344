"""A TCP relay between one worker and the coordinator that can be cut, stalled or made slow."""
import asyncio
import threading

PASS, CUT, STALL, SLOW = "pass", "cut", "stall", "slow"
SLOW_BYTES_PER_SECOND = 200_000
SLOW_LATENCY_S = 0.15


class Link:
    """Faults are set from any thread; the relay runs on the loop of Links."""

    def __init__(self, loop):
        self.loop = loop
        self.mode = PASS
        self.target = None  # (host, port)
        self.open = set()

    async def start(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.server = server
        self.port = server.sockets[0].getsockname()[1]

    def set_mode(self, mode):
        """cut: connections are closed, and new ones at once. stall: open, but nothing gets through. slow: latency and a low rate."""
        self.mode = mode
        if mode == CUT:
            self.loop.call_soon_threadsafe(self.abort_all)

    def abort_all(self):
        for writer in list(self.open):
            writer.transport.abort()

    async def serve(self, reader, writer):
        if self.mode == CUT or self.target is None:
            writer.transport.abort()
            return
        try:
            up_reader, up_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        self.open |= {writer, up_writer}
        await asyncio.gather(self.pump(reader, up_writer), self.pump(up_reader, writer), return_exceptions=True)
        for end in (writer, up_writer):
            self.open.discard(end)
            end.transport.abort()

    async def pump(self, reader, writer):
        while data := await reader.read(1 << 16):
            while self.mode == STALL:
                await asyncio.sleep(0.02)
            if self.mode == SLOW:
                await asyncio.sleep(SLOW_LATENCY_S + len(data) / SLOW_BYTES_PER_SECOND)
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


class Links:
    """One link for each worker, all on one thread."""

    def __init__(self, names):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.by_name = {}
        for name in names:
            link = Link(self.loop)
            asyncio.run_coroutine_threadsafe(link.start(), self.loop).result()
            self.by_name[name] = link

    def connect(self, address):
        host, port = address.rsplit(":", 1)
        for link in self.by_name.values():
            link.target = (host, int(port))

    def close(self):
        for link in self.by_name.values():
            link.set_mode(CUT)
            self.loop.call_soon_threadsafe(link.server.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
