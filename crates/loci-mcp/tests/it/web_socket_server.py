"""A web socket server that speaks the protocol by hand and does one thing out of the ordinary, named by the first argument."""

import base64
import hashlib
import json
import socketserver
import struct
import sys

fault, port, log = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def frame(data, kind=1, end=True):
    head = bytes([(0x80 if end else 0) | kind])
    if len(data) < 126:
        return head + bytes([len(data)]) + data
    if len(data) < 65536:
        return head + b"\x7e" + struct.pack(">H", len(data)) + data
    return head + b"\x7f" + struct.pack(">Q", len(data)) + data


class Handler(socketserver.StreamRequestHandler):
    def note(self, text):
        with open(log, "a") as file:
            file.write(text + "\n")

    def read_frame(self):
        head = self.rfile.read(2)
        if len(head) < 2:
            return None, b""
        size = head[1] & 0x7F
        if size == 126:
            (size,) = struct.unpack(">H", self.rfile.read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self.rfile.read(8))
        assert head[1] & 0x80, "what a client sends is masked"
        mask = self.rfile.read(4)
        return head[0] & 0x0F, bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(size)))

    def handle(self):
        lines = iter(lambda: self.rfile.readline().decode().strip(), "")
        request, *headers = list(lines) or [""]
        headers = {name.lower(): it for name, it in (line.split(": ", 1) for line in headers)}
        if not request:
            return
        self.note(f"{request} protocol={headers.get('sec-websocket-protocol')} auth={headers.get('authorization')} own={headers.get('x-own')}")
        if fault == "helper" and headers.get("authorization") in (None, "Bearer 1"):
            self.wfile.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            return
        if fault == "plain":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            return
        key = "wrong" if fault == "key" else headers["sec-websocket-key"]
        hashed = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        self.wfile.write(
            f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: mcp\r\nSec-WebSocket-Accept: {hashed}\r\n\r\n".encode()
        )
        while True:
            kind, data = self.read_frame()
            if kind is None or kind == 8:
                self.note("closed in order" if kind == 8 else "broke off")
                return
            if kind == 10:
                self.note(f"pong {data.decode()}")
            if kind == 1:
                self.answer(json.loads(data))

    def say(self, value):
        self.wfile.write(frame(json.dumps(value).encode()))

    def answer(self, message):
        method, result = message.get("method"), None
        self.note(str(method))
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}}
        if method == "tools/list":
            result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
        if method == "tools/call":
            if fault == "dies":
                self.connection.close()
                raise SystemExit
            result = {"content": [{"type": "text", "text": "x" * 100000 if fault == "large" else "fine"}]}
        if result is None or "id" not in message:
            return
        data = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        if fault == "odd" and method == "tools/call":
            self.wfile.write(frame(b"nonsense") + frame(b"hello", kind=9))
            half = len(data) // 2
            self.wfile.write(frame(data[:half], end=False) + frame(b"between", kind=9) + frame(data[half:], kind=0))
            return
        self.wfile.write(frame(data))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


Server(("127.0.0.1", port), Handler).serve_forever()
