"""A small MCP server, by hand: quick to start, with tools for the tests of the binary. Arguments change what it does."""

import json
import os
import sys
import threading
import time

args = sys.argv[1:]


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def option(name):
    return args[args.index(name) + 1] if name in args else None


if option("--started"):
    open(option("--started"), "a").write(f"{os.getpid()}\n")
if option("--delay"):
    time.sleep(float(option("--delay")))


def tool(name, description, properties=None, **more):
    schema = {"type": "object", "properties": properties or {}}
    return {"name": name, "description": description, "inputSchema": schema, **more}


tools = [
    tool("echo", "Says what it is told.", {"text": {"type": "string", "default": "nothing"}}),
    tool("env", "Shows a variable.", {"name": {"type": "string"}}),
    tool("count", "Counts.", annotations={"readOnlyHint": True}),
    tool("parts", "Sends one of everything."),
    tool("large", "Says a lot."),
    tool("fail", "Fails."),
    tool("hang", "Never answers."),
    tool("ask", "Asks the user."),
    tool("grow", "Brings another tool."),
    tool("confirm", "Wants a person.", _meta={"anthropic/requiresUserInteraction": True}),
    tool("typed", "Returns data.", {"n": {}}, outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
    tool("gated", "Answers when a file is there.", {"file": {"type": "string"}}),
    tool("visit", "Leads the user to a page."),
    tool("sample", "Asks the model."),
    tool("write", "Writes files.", {"files": {"type": "array"}}),
    tool("roots", "Says where the client works."),
    tool("renew", "Has other prompts."),
    tool("meta", "Says what it is told beside its arguments."),
    tool("await", "Answers when a file is there.", {"file": {"type": "string"}}, annotations={"readOnlyHint": True}),
    tool("make", "Makes a file.", {"file": {"type": "string"}}, annotations={"readOnlyHint": True}),
    tool("members", "Answers those who have been at a page.", {"done": {"type": "string"}}),
]
if option("--verdict"):
    tools = [tool("verdict", "Says whether a call may run.")]
if option("--tools"):
    tools = [tool(name, "Does something.") for name in option("--tools").split(",")]
if option("--always"):
    tools = [{**it, **({"_meta": {"anthropic/alwaysLoad": True}} if it["name"] == option("--always") else {})} for it in tools]

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
waiting, declared = None, {}
prompts = [{"name": "review", "description": "Reviews.", "arguments": [{"name": "what", "required": True}, {"name": "how"}]}]


def written(path):
    """Says whether a file could be written; variables are filled in."""
    try:
        open(os.path.expandvars(path), "w").close()
        return "yes"
    except OSError as error:
        return type(error).__name__


def watch(file):
    """Says that what was to be done at a page is done, once a file is there."""
    while not os.path.exists(file):
        time.sleep(0.02)
    say({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": "m1"}})


def call(request):
    global waiting
    name, given = request["params"]["name"], request["params"].get("arguments", {})
    content, more = [{"type": "text", "text": name}], {}
    if name == "echo":
        content = [{"type": "text", "text": json.dumps(given)}]
    if name == "verdict":
        content = [{"type": "text", "text": option("--verdict")}]
    if name == "env":
        content = [{"type": "text", "text": os.environ.get(given["name"], "(unset)")}]
    if name == "parts":
        content = [
            {"type": "text", "text": "a text"},
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            {"type": "image", "data": "bm8gcGljdHVyZQ==", "mimeType": "image/png"},
            {"type": "audio", "data": "YXVkaW8=", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "note://x", "name": "x"},
            {"type": "resource", "resource": {"uri": "note://y", "text": "inside"}},
        ]
    if name == "large":
        content = [{"type": "text", "text": "0123456789\n" * 20000}]
    if name == "fail":
        content, more = [{"type": "text", "text": "it broke"}], {"isError": True}
    if name == "hang":
        return
    if name == "typed":
        more = {"structuredContent": {"n": given["n"]}}
    if name == "meta":
        content = [{"type": "text", "text": json.dumps(request["params"].get("_meta", {}))}]
    if name == "make":
        open(given["file"], "w").close()
    if name == "await":
        while not os.path.exists(given["file"]):
            time.sleep(0.02)
    if name == "gated":
        while not os.path.exists(given["file"]):
            time.sleep(0.02)
        content = [{"type": "text", "text": "the gate is open"}, {"type": "image", "data": PNG, "mimeType": "image/png"}]
    if name == "write":
        content = [{"type": "text", "text": " ".join(written(path) for path in given["files"])}]
    asked = {
        "sample": ("sampling/createMessage", {"messages": [{"role": "user", "content": {"type": "text", "text": "Two words?"}}],
                                              "systemPrompt": "Be a server's.", "maxTokens": 100}),
        "roots": ("roots/list", {}),
        "visit": ("elicitation/create", {"mode": "url", "message": "Log in there", "elicitationId": "e1",
                                         "url": "https://example.com/login?state=1"}),
    }
    if name in asked:
        waiting = request
        method, params = asked[name]
        return say({"jsonrpc": "2.0", "id": "ask", "method": method, "params": params})
    if name == "grow":
        tools.append(tool("grown", "Was not there before."))
        say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    if name == "members" and not os.path.exists(given["done"]):
        page = {"mode": "url", "elicitationId": "m1", "url": "https://example.com/join", "message": "Join first"}
        threading.Thread(target=watch, args=(given["done"],), daemon=True).start()
        return say({"jsonrpc": "2.0", "id": request["id"],
                    "error": {"code": -32042, "message": "for members", "data": {"elicitations": [page]}}})
    if name == "renew":
        prompts[:] = [{"name": "check", "description": "Checks.", "arguments": [{"name": "where"}]}]
        say({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"})
    if name == "ask":
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        waiting = request
        params = {"message": "Who are you?", "requestedSchema": schema}
        return say({"jsonrpc": "2.0", "id": "ask", "method": "elicitation/create", "params": params})
    say({"jsonrpc": "2.0", "id": request["id"], "result": {"content": content, **more}})


for line in sys.stdin:
    request = json.loads(line)
    method = request.get("method")
    result = None
    if method == "initialize":
        declared = request["params"]["capabilities"]
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}, **({"resources": {}, "prompts": {}, "completions": {}} if "--all" in args else {})},
            "serverInfo": {"name": "small", "version": "1"},
            "instructions": option("--instructions") or "",
        }
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "resources/list":
        result = {"resources": [{"uri": "note://today", "name": "today"}]}
    elif method == "resources/read":
        result = {"contents": [{"uri": request["params"]["uri"], "text": "buy milk"}]}
    elif method == "prompts/list":
        result = {"prompts": prompts}
    elif method == "prompts/get":
        text = "Review: " + json.dumps(request["params"]["arguments"]) + (option("--mentions") or "")
        result = {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    elif method == "completion/complete":
        argument, others = request["params"]["argument"], request["params"].get("context", {}).get("arguments", {})
        values = ["main.rs", "map one.rs", "other.rs"] if argument["name"] == "what" else [f"how-{others['what']}"]
        values = [value for value in values if value.startswith(argument["value"])]
        result = {"completion": {"values": values, "hasMore": False}}
    elif method == "tools/call":
        call(request)
    elif method == "notifications/roots/list_changed" and option("--roots"):
        open(option("--roots"), "a").write("changed\n")
    elif method == "notifications/cancelled" and option("--cancelled"):
        open(option("--cancelled"), "w").write("cancelled")
    elif request.get("id") == "ask" and waiting:
        text = json.dumps(request.get("result", request.get("error")))
        if waiting["params"]["name"] == "sample":
            text += " declared: " + ", ".join(declared)
        if waiting["params"]["name"] == "visit":
            for done in ["never asked", "e1", "e1"]:
                say({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": done}})
        content = [{"type": "text", "text": text}]
        say({"jsonrpc": "2.0", "id": waiting["id"], "result": {"content": content}})
    if result is not None:
        say({"jsonrpc": "2.0", "id": request["id"], "result": result})
