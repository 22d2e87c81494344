"""`kubectl exec` and `kubectl cp` over WebSocket, protocol v5.channel.k8s.io: a byte for the channel (0 standard input, 1 output,
2 errors, 3 the end, 255 closes one), then data."""
import base64
import hashlib
import json
import struct
import subprocess
import threading

MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455


def frame(payload, opcode=2):
    length = len(payload)
    head = bytes([0x80 | opcode]) + (bytes([length]) if length < 126 else b"\x7e" + struct.pack(">H", length) if length < 65536
                                     else b"\x7f" + struct.pack(">Q", length))
    return head + payload


def read_frame(file):
    """(opcode, payload), or (8, b"") at the end."""
    head = file.read(2)
    if len(head) < 2:
        return 8, b""
    length = head[1] & 0x7f
    if length == 126:
        (length,) = struct.unpack(">H", file.read(2))
    elif length == 127:
        (length,) = struct.unpack(">Q", file.read(8))
    mask = file.read(4) if head[1] & 0x80 else bytes(4)
    data = file.read(length)
    mask = (mask * (length // 4 + 1))[:length]
    return head[0] & 0x0f, (int.from_bytes(data, "big") ^ int.from_bytes(mask, "big")).to_bytes(length, "big")


def accept(handler):
    """Answers the handshake; False when it is none that is spoken here."""
    protocols = [p.strip() for p in handler.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    if handler.headers.get("Upgrade", "").lower() != "websocket" or "v5.channel.k8s.io" not in protocols:
        return False
    key = base64.b64encode(hashlib.sha1((handler.headers["Sec-WebSocket-Key"] + MAGIC).encode()).digest()).decode()
    handler.send_response(101)
    for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", key),
                        ("Sec-WebSocket-Protocol", "v5.channel.k8s.io")):
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.flush()
    return True


def serve(handler, command, wants_input, **options):
    """Runs the command, joined to the stream."""
    lock = threading.Lock()

    def send(channel, data, opcode=2):
        with lock:
            try:
                handler.wfile.write(frame(bytes([channel]) + data if opcode == 2 else data, opcode))
                handler.wfile.flush()
            except OSError:
                pass

    process = subprocess.Popen(command, stdin=subprocess.PIPE if wants_input else subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, **options)

    def forward(pipe, channel):
        while data := pipe.read1(65536):
            send(channel, data)

    def read():
        try:
            while True:
                opcode, data = read_frame(handler.rfile)
                if opcode == 8 or data[:1] == b"\xff":
                    break
                if data[:1] == b"\x00" and wants_input:
                    process.stdin.write(data[1:])
                    process.stdin.flush()
        except OSError:
            pass
        if wants_input:
            try:
                process.stdin.close()
            except OSError:
                pass

    threads = [threading.Thread(target=forward, args=(process.stdout, 1)), threading.Thread(target=forward, args=(process.stderr, 2))]
    threading.Thread(target=read, daemon=True).start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    code = process.wait()
    status = {"metadata": {}, "status": "Success"} if code == 0 else {
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": f"command terminated with exit code {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]}}
    send(3, json.dumps(status).encode())
    send(0, struct.pack(">H", 1000), opcode=8)
    handler.close_connection = True
