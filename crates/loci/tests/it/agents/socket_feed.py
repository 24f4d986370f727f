"""A web socket that says two things to whoever comes and closes with a code. It prints its port first."""

import base64
import hashlib
import socket
import struct

server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
peer, _ = server.accept()
stream = peer.makefile("rb")
headers = dict(line.split(": ", 1) for line in iter(lambda: stream.readline().decode().strip(), "") if ": " in line)
key = {name.lower(): value for name, value in headers.items()}["sec-websocket-key"]
accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
peer.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())


def frame(kind, data):
    return bytes([0x80 | kind, len(data)]) + data


peer.sendall(frame(1, b"build 7 failed\nin the linter") + frame(2, b"\x00" * 5) + frame(8, struct.pack(">H", 4001) + b"enough"))
stream.read()
