"""A server that speaks the protocol by hand and does one thing wrong, named by the first argument."""

import json
import os
import signal
import subprocess
import sys
import time

fault = sys.argv[1]


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(request, result):
    say({"jsonrpc": "2.0", "id": request["id"], "result": result})


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


tools = [tool("good")]
if fault == "bad-tools":
    tools = [tool("good"), {"name": "bad", "inputSchema": 7}, {}, tool("good"), tool("also good!"), tool("also_good_")]
if fault == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if fault == "grandchild":
    child = subprocess.Popen(["sleep", "1000"])
    open(sys.argv[2], "w").write(f"{os.getpid()} {child.pid}")
if fault == "stubborn":
    open(sys.argv[2], "w").write(str(os.getpid()))
if fault == "env":
    json.dump(dict(os.environ), open(sys.argv[2], "w"))
if fault == "exits":
    sys.stderr.write("Traceback\nNo module named loci\n")
    sys.exit(3)
if fault == "noise":
    sys.stdout.write("Server is starting\n\x00\xff{not json}\n[1,2]\n\n")
    sys.stderr.write("a complaint\n")
    sys.stderr.flush()

grown_capabilities = {"resources": {}} if fault == "grows" else {}
n_calls = 0

while True:
    line = sys.stdin.readline()
    if not line:
        if fault == "stubborn":
            time.sleep(1000)
        break
    request = json.loads(line)
    method = request.get("method")
    if method == "initialize":
        if fault == "silent":
            continue
        version = "2031-01-01" if fault == "future" else request["params"]["protocolVersion"]
        if fault == "old":
            version = "2024-11-05"
        answer(request, {
            "protocolVersion": version,
            "capabilities": {"tools": {}, "prompts": {}, **grown_capabilities} if fault != "bare" else {},
            "serverInfo": {"name": "faulty", "version": "1"},
        })
    elif method == "tools/list":
        if fault == "dies-late":
            sys.exit(7)
        if fault == "endless":
            n = int(request["params"].get("cursor", "0"))
            answer(request, {"tools": [tool(f"t{n}-{i}") for i in range(100)], "nextCursor": str(n + 1)})
        elif fault == "pages":
            n = int(request["params"].get("cursor", "0"))
            answer(request, {"tools": [tool(f"t{n}")], **({"nextCursor": str(n + 1)} if n < 4 else {})})
        else:
            answer(request, {"tools": tools})
    elif method == "prompts/list" and fault == "grows":
        answer(request, {"prompts": [{"name": f"p{n}"} for n in range(n_calls)]})
    elif method == "resources/list":
        answer(request, {"resources": [{"uri": f"r://{n}", "name": "r"} for n in range(n_calls)]})
    elif method == "prompts/list":
        say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -1, "message": "no prompts today"}})
    elif method == "tools/call":
        if fault == "flood":
            chunk = ("x" * 1000 + "\n") * 1000
            for _ in range(6):
                sys.stdout.write(chunk)
                sys.stderr.write(chunk)
            for _ in range(5000):
                say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            for n in range(100):
                say({"jsonrpc": "2.0", "id": f"q{n}", "method": "ping"})
        if fault == "grows":
            n_calls += 1
            tools.append(tool(f"t{n_calls}"))
            for kind in ("tools", "resources", "prompts"):
                say({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"})
        if fault == "dies":
            sys.exit(1)
        if fault == "hangs":
            continue
        if fault == "huge":
            n_calls += 1
            text = '{"content":[{"type":"text","text":"' + "x" * (65 << 20) + '"}]}'
            if n_calls == 1:
                sys.stdout.write('{"jsonrpc":"2.0","result":' + text + ',"id":' + str(request["id"]) + "}\n")
            elif n_calls == 2:
                sys.stdout.write('{"jsonrpc":"2.0","id":' + str(request["id"]) + ',"result":' + text + "}\n")
            elif n_calls == 3:
                sys.stdout.write('[{"jsonrpc":"2.0","id":' + str(request["id"]) + ',"result":' + text + "}]\n")
            sys.stdout.flush()
            if n_calls <= 3:
                continue
        if fault == "twice":
            answer(request, {"content": [{"type": "text", "text": "first"}]})
        if fault == "samples":
            say({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {}})
            reply = json.loads(sys.stdin.readline())
            answer(request, {"content": [{"type": "text", "text": json.dumps(reply["error"]["code"])}]})
            continue
        answer(request, {"content": [{"type": "text", "text": "fine"}]})
    elif method == "notifications/cancelled" and fault == "hangs":
        open(sys.argv[2], "w").write(json.dumps(request["params"]))
