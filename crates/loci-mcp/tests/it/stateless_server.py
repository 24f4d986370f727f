"""A server of the revision without handshakes, written by hand; it does one thing out of the ordinary, named by the first argument.

With a port and a log as further arguments it speaks HTTP, without them lines."""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

fault = sys.argv[1]
META = "io.modelcontextprotocol/"
tools = [{"name": "t", "inputSchema": {"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}}]
state = {"reads": 0, "lists": 0, "listeners": [], "rounds": 0, "looks": 0, "said": None}


def result(body, **more):
    return {"result": {"resultType": "complete", **body, **more}}


def error(code, message, **data):
    return {"error": {"code": code, "message": message, "data": data}}


def answer(message):
    """Returns the answer to a request; None means that there is none."""
    method, params = message["method"], message.get("params", {})
    meta = params.get("_meta", {})
    if method == "initialize":
        if fault in ("strict", "stranger"):
            return error(-32022, "Unsupported protocol version", supported=["2026-07-28"], requested="?")
        return result({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "old"}})
    if meta.get(META + "protocolVersion") is None:
        return result({"tools": tools}) if method == "tools/list" else result({"content": [{"type": "text", "text": "old"}]})
    if method == "server/discover":
        if fault == "stranger":
            return error(-32022, "Unsupported protocol version", supported=["2031-01-01"], requested="2026-07-28")
        if fault == "older":
            return error(-32022, "Unsupported protocol version", supported=["2025-11-25"], requested="2026-07-28")
        if fault == "unknowing":
            return error(-32601, "Method not found")
        if fault == "leaves":
            sys.exit(3)
        listed = {"listChanged": fault == "changes"}
        capabilities = {"tools": listed, "resources": {}, "prompts": {}, "extensions": {META + "tasks": {}}}
        return result({"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "instructions": "Be brief."})
    if method == "tools/list":
        state["lists"] += 1
        more = [{"name": f"t{state['lists']}", "inputSchema": {"type": "object"}}] if fault in ("changes", "stale") else []
        return result({"tools": tools + more}, ttlMs=0 if fault == "stale" else 60000, cacheScope="private")
    if method == "resources/list":
        return result({"resources": [{"uri": "a://b", "name": "b"}]}, ttlMs=60000)
    if method == "resources/read":
        state["reads"] += 1
        return result({"contents": [{"uri": "a://b", "text": f"read {state['reads']}"}]}, ttlMs=60000)
    if method == "prompts/list":
        return result({"prompts": []})
    if method == "tools/call":
        return call(params)
    if method.startswith("tasks/"):
        return task(method, params)
    return error(-32601, f"Method not found: {method}")


def task(method, params):
    """A task that works, asks who the user is (twice, since it is looked at twice), and says so."""
    now = {"taskId": params["taskId"], "createdAt": "", "lastUpdatedAt": "", "ttlMs": None, "pollIntervalMs": 20}
    if method == "tasks/update":
        assert state["said"] is None, "a question is answered once"
        state["said"] = params["inputResponses"]["who"]
        return result({})
    if method == "tasks/cancel":
        return result({})
    state["looks"] += 1
    if fault == "task-fails":
        return result({**now, "status": "failed", "error": {"code": -5, "message": "out of paper"}})
    if fault == "task-hangs":
        return result({**now, "status": "working"})
    if state["looks"] <= 2:
        return result({**now, "status": "working", "statusMessage": f"step {state['looks']}"})
    if state["said"] is None or state["looks"] <= 4:
        question = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {
            "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}}
        return result({**now, "status": "input_required", "inputRequests": {"who": question}})
    text = f"after {state['looks']} looks: {state['said']}"
    return result({**now, "status": "completed", "result": {"content": [{"type": "text", "text": text}]}})


def call(params):
    if fault.startswith("task"):
        assert META + "tasks" in params["_meta"][META + "clientCapabilities"]["extensions"]
        return {"result": {"resultType": "task", "taskId": "t-1", "status": "working", "ttlMs": None, "pollIntervalMs": 20}}
    if fault == "asks":
        if "inputResponses" not in params:
            state["rounds"] += 1
            question = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {
                "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}}
            return {"result": {"resultType": "input_required", "inputRequests": {"who": question}, "requestState": "§ 1"}}
        said = params["inputResponses"]["who"]
        return result({"content": [{"type": "text", "text": f"{params['requestState']} {said['action']} {said.get('content')}"}]})
    if fault == "asks-for-roots":
        return {"result": {"resultType": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}}
    if fault == "asks-for-ever":
        return {"result": {"resultType": "input_required", "requestState": "again"}}
    if fault == "changes":
        for listener in state["listeners"]:
            listener("notifications/tools/list_changed")
    return result({"content": [{"type": "text", "text": "new"}]})


def acknowledgement(message):
    wanted = message["params"]["notifications"]
    params = {"notifications": wanted, "_meta": {META + "subscriptionId": message["id"]}}
    return {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def note(self, text):
        with open(sys.argv[3], "a") as file:
            file.write(text + "\n")

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()

    def event(self, message):
        self.wfile.write(f"data: {json.dumps(message)}\n\n".encode())
        self.wfile.flush()

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = ("Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Param-Region")
        self.note(message["method"] + " " + " ".join(f"{name}={self.headers.get(name)}" for name in names))
        if "id" not in message:
            return self.reply(202, b"")
        if message["method"] == "subscriptions/listen":
            self.close_connection = True
            self.stream()
            self.event(acknowledgement(message))
            done = threading.Event()
            state["listeners"].append(lambda method: self.event({"jsonrpc": "2.0", "method": method}))
            done.wait(60)
            return
        if message["method"] == "tools/call" and fault == "hangs":
            self.close_connection = True
            self.stream()
            try:
                while True:
                    self.event({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "still here"}})
                    time.sleep(0.02)
            except OSError:
                return self.note("closed by the client")
        said = answer(message)
        status = 400 if "error" in said else 200
        body = {"jsonrpc": "2.0", "id": None if fault == "unknowing" else message["id"], **said}
        if fault == "unknowing" and message["method"] != "server/discover":
            body["id"] = message["id"]
        self.reply(status, json.dumps(body).encode())

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.note("GET")
        self.reply(405, b"")


if len(sys.argv) > 2:
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue

    def say(said):
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **said}) + "\n")
        sys.stdout.flush()

    if message["method"] == "subscriptions/listen":
        say(acknowledgement(message))
        state["listeners"].append(lambda method: say({"method": method}))
        continue
    say({"id": message["id"], **answer(message)})
