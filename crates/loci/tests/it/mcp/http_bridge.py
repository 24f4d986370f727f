"""Puts a program that speaks MCP over its standard input and output behind an address, for a suite that knows addresses only.

Prints the port, then passes each message on with an id of its own and gives back what answers it."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

program = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
lock, waiting, listeners, count = threading.Lock(), {}, {}, [0]
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def listen():
    for line in program.stdout:
        message = json.loads(line)
        entry = waiting.pop(message.get("id"), None)
        if entry:
            entry["answer"] = message
            entry["done"].set()
        listener = listeners.get(message.get("params", {}).get("_meta", {}).get(SUBSCRIPTION))
        if listener:
            listener(message)


def send(message):
    with lock:
        program.stdin.write(json.dumps(message) + "\n")
        program.stdin.flush()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, message, own):
        """Passes on what is told of a subscription, until nobody reads it any more."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        gone = threading.Event()

        def tell(told):
            told["params"]["_meta"][SUBSCRIPTION] = message["id"]
            try:
                self.wfile.write(f"data: {json.dumps(told)}\n\n".encode())
                self.wfile.flush()
            except OSError:
                gone.set()

        listeners[own] = tell
        send({**message, "id": own})
        gone.wait(10)

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        self.reply(405)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message or "method" not in message:
            send(message)
            return self.reply(202)
        entry = {"done": threading.Event()}
        with lock:
            count[0] += 1
            own = count[0]
        if message["method"] == "subscriptions/listen":
            return self.stream(message, own)
        waiting[own] = entry
        send({**message, "id": own})
        if not entry["done"].wait(20):
            return self.reply(504)
        answer = {**entry["answer"], "id": message["id"]}
        code = answer.get("error", {}).get("code")
        is_stateless = self.headers.get("MCP-Protocol-Version", "") >= "2026"
        status = {-32601: 404, -32600: 400, -32602: 400, -32022: 400}.get(code, 200) if is_stateless else 200
        self.reply(status, json.dumps(answer).encode())


threading.Thread(target=listen, daemon=True).start()
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
program.stdin.close()
program.wait(10)
