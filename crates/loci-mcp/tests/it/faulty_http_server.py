"""An HTTP server that speaks the protocol by hand and does one thing out of the ordinary, named by the first argument."""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

fault, port, log = sys.argv[1], int(sys.argv[2]), sys.argv[3]
state = {"sessions": 0, "calls": 0, "posts": 0, "listener": None}
answered = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def note(self, text):
        with open(log, "a") as file:
            file.write(text + "\n")

    def answer(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_DELETE(self):
        self.note(f"DELETE {self.headers.get('Mcp-Session-Id')}")
        self.answer(200)

    def do_GET(self):
        last = self.headers.get("Last-Event-ID")
        if fault == "asks":
            return self.listen()
        if last is None:
            return self.answer(405)
        self.note(f"GET behind {last}")
        result = {"jsonrpc": "2.0", "id": state["resumed"], "result": {"content": [{"type": "text", "text": "resumed"}]}}
        self.answer(200, f"id: 9\ndata: {json.dumps(result)}\n\n".encode(), "text/event-stream")

    def listen(self):
        """Opens the stream beside the answers, late."""
        time.sleep(0.3)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        state["listener"] = self.wfile
        answered.wait(20)
        self.close_connection = True

    def ask(self):
        """Asks the person on that stream; what nobody listens to is lost."""
        if state["listener"] is None:
            return "nobody listens"
        params = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
        question = {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": params}
        state["listener"].write(f"data: {json.dumps(question)}\n\n".encode())
        state["listener"].flush()
        return "answered" if answered.wait(20) else "no answer"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = json.loads(body)
        method = message.get("method")
        state["posts"] += 1
        names = ("Mcp-Session-Id", "Mcp-Protocol-Version", "Authorization", "X-Own")
        self.note(f"{method} " + " ".join(f"{name}={self.headers.get(name)}" for name in names))
        if fault == "redirect" and self.path == "/mcp":
            return self.answer(307, Location="/mcp/")
        if fault == "elsewhere" and self.headers["Host"].startswith("localhost"):
            return self.answer(307, Location=f"http://127.0.0.1:{port}/mcp")
        if fault == "login":
            return self.answer(401, WWW_Authenticate='Bearer resource_metadata="x"')
        if fault == "helper" and self.headers.get("Authorization") != "Bearer 2":
            return self.answer(401)
        if fault == "busy" and state["posts"] < 3:
            return self.answer(503, b"later")
        if fault == "gone":
            return self.answer(404, b"nothing here")
        result = {}
        if method == "initialize":
            state["sessions"] += 1
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "h", "version": "1"}}
            reply = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            return self.answer(200, reply, Mcp_Session_Id=f"s{state['sessions']}")
        if message.get("id") == "q1":
            answered.set()
            return self.answer(202)
        if "id" not in message:
            return self.answer(202)
        if method == "tools/list":
            result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
        if method == "tools/call":
            state["calls"] += 1
            if fault == "forgets" and state["calls"] == 1:
                return self.answer(404)
            if fault == "resumes":
                state["resumed"] = message["id"]
                note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "half way"}}
                return self.answer(200, f"retry: 10\nid: 8\ndata: {json.dumps(note)}\n\n".encode(), "text/event-stream")
            if fault == "breaks":
                return self.answer(200, b": nothing\n\n", "text/event-stream")
            if fault == "refuses":
                error = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -1, "message": "not today"}}
                return self.answer(400, json.dumps(error).encode())
            said = self.ask() if fault == "asks" else f"call {state['calls']}"
            result = {"content": [{"type": "text", "text": said}]}
        self.answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())


ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
