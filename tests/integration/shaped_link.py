"""A TCP relay of a bandwidth and a latency, each way, that all its connections share: a link to the coordinator."""
import asyncio
import collections
import threading
import time

PIECE = 16 << 10  # bytes that travel together
# What a link carries for a byte of a connection: 1448 of the 1514 bytes of a packet are data (Ethernet, IP and TCP have the rest),
# and every second packet is acknowledged by one of 66 bytes in the other direction.
PACKET, DATA, ACKNOWLEDGEMENT = 1514, 1448, 66


class Direction:
    """When a piece that is sent now has gone through: it waits for those before it, of every connection."""

    def __init__(self, bytes_per_second, delay_s):
        self.bytes_per_second = bytes_per_second
        self.delay_s = delay_s
        self.free_at = 0.0
        self.bytes = 0

    def occupy(self, count):
        self.free_at = max(self.free_at, time.monotonic()) + count / self.bytes_per_second

    def sent(self, count, back):
        """(when the link is free for the next piece, when this one arrives); `back` is the other direction"""
        self.bytes += count
        self.occupy(count * PACKET / DATA)
        back.occupy(count / DATA / 2 * ACKNOWLEDGEMENT)
        return self.free_at, self.free_at + self.delay_s


class ShapedLink:
    """Serves on `port` of this machine, and forwards to `target` ("host:port")."""

    def __init__(self, target, megabits, delay_ms):
        host, port = target.rsplit(":", 1)
        self.target = (host, int(port))
        self.up = Direction(megabits * 1e6 / 8, delay_ms / 1e3)
        self.down = Direction(megabits * 1e6 / 8, delay_ms / 1e3)
        self.open = set()
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda *_: None)  # of connections that were cut
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self.serve, "127.0.0.1", 0, limit=2 * PIECE), self.loop).result()
        self.port = self.server.sockets[0].getsockname()[1]

    def shape(self, megabits):
        """From now on, each way."""
        self.up.bytes_per_second = self.down.bytes_per_second = megabits * 1e6 / 8

    async def serve(self, reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection(*self.target, limit=2 * PIECE)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, far_writer}
        self.open |= ends
        await asyncio.gather(self.pump(reader, far_writer, self.up, self.down),
                             self.pump(far_reader, writer, self.down, self.up),
                             return_exceptions=True)
        self.open -= ends
        for end in ends:
            end.transport.abort()

    async def pump(self, reader, writer, direction, back):
        pieces, news = collections.deque(), asyncio.Event()
        delivery = asyncio.create_task(self.deliver(pieces, news, writer))
        try:
            while data := await reader.read(PIECE):
                free_at, arrives_at = direction.sent(len(data), back)
                pieces.append((arrives_at, data))
                news.set()
                await asyncio.sleep(max(0.0, free_at - time.monotonic()))
            pieces.append((0, None))
            news.set()
            await delivery
        finally:
            if not self.loop.is_closed():
                delivery.cancel()

    @staticmethod
    async def deliver(pieces, news, writer):
        while True:
            while not pieces:
                news.clear()
                await news.wait()
            arrives_at, data = pieces.popleft()
            if data is None:
                break
            await asyncio.sleep(max(0.0, arrives_at - time.monotonic()))
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    def close(self):
        def end():
            self.server.close()
            for writer in list(self.open):
                writer.transport.abort()
            self.loop.call_later(0.1, self.loop.stop)

        self.loop.call_soon_threadsafe(end)
        self.thread.join()
        # Never closed: what is left of its connections goes with this process.
