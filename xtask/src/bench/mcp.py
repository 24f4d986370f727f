"""What MCP servers cost a run, measured from outside.

Each program answers one prompt with twenty servers that are small programs, against a scripted model on loopback, with a
home and a project of its own. Servers note when they answer, the model notes when it is asked, and the program's own
processor time and memory are read from the system. Prints a line a figure: program, measure and value, with tabs between.
`mcp.rs` makes the table.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import ThreadingHTTPServer

from scripted_answer import AnswerHandler, call_id

N_SERVERS = 20
N_CALLS = 40
KEY = "sk-ant-test-00000000000000000000"

SERVER = """
import json, sys, time
name, log = sys.argv[1], sys.argv[2]
out, tool = sys.stdout, {"name": "t", "description": "A tool", "inputSchema": {"type": "object"}}
def note(what, at):
    with open(log, "a") as file:
        file.write(json.dumps([name, what, at]) + "\\n")
for line in sys.stdin:
    got = time.monotonic()
    m = json.loads(line)
    if "id" not in m:
        continue
    method = m["method"]
    if method == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}}
    elif method == "tools/list":
        r = {"tools": [tool]}
    elif method == "tools/call":
        r = {"content": [{"type": "text", "text": "ok"}]}
    else:
        out.write(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "no"}}) + "\\n")
        out.flush()
        continue
    out.write(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}) + "\\n")
    out.flush()
    if method == "tools/list":
        note("listed", time.monotonic())
    if method == "tools/call":
        note("called", time.monotonic() - got)
"""


class Model(AnswerHandler):
    """Calls the first server's tool so many times, then ends; knows when it was asked and when it had answered.

    What was asked counts from its last byte."""

    def do_POST(self):
        run = self.server.run
        body = self.rfile.read(int(self.headers["content-length"]))
        at = time.monotonic()
        body = json.loads(body)
        if "count_tokens" in self.path:
            return self.reply(b'{"input_tokens":10}')
        tools = {tool["name"] for tool in body.get("tools", [])}
        if "mcp__s0__t" not in tools and not run.asked:
            # A side question: a title, or whether there is quota.
            if len(tools) < 3:
                return self.answer({"type": "text", "text": "ok"}, body)
        run.asked.append((at, sum(1 for name in tools if name.startswith("mcp__s"))))
        if len(run.asked) == 1:
            run.sample()
        n_turns = sum(1 for message in body["messages"] if message["role"] == "assistant")
        if n_turns < run.n_calls:
            block = {"type": "tool_use", "id": call_id(), "name": "mcp__s0__t", "input": {}}
        else:
            block = {"type": "text", "text": "Done."}
        self.answer(block, body)
        run.answered.append(time.monotonic())


def own_cpu_ms(pid):
    """Returns the processor time of a process without that of its children."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def memory_kb(pid):
    """Returns the memory that is the process's own."""
    rows = open(f"/proc/{pid}/smaps_rollup").read().splitlines()
    return sum(int(row.split()[1]) for row in rows if row.startswith(("Private_Dirty", "Private_Clean")))


class Run:
    """One prompt with so many servers and calls."""

    def __init__(self, binary, n_servers, n_calls):
        self.n_calls, self.asked, self.answered = n_calls, [], []
        self.cpu = self.memory = None
        self.root = tempfile.mkdtemp(prefix="bench-mcp-")
        home, project = f"{self.root}/home", f"{self.root}/project"
        os.makedirs(home), os.makedirs(project)
        self.log = f"{self.root}/log"
        open(self.log, "w").close()
        script = f"{self.root}/server.py"
        open(script, "w").write(SERVER)
        servers = {f"s{n}": {"command": sys.executable, "args": ["-S", "-E", script, f"s{n}", self.log]} for n in range(n_servers)}
        config = f"{self.root}/mcp.json"
        json.dump({"mcpServers": servers}, open(config, "w"))
        httpd = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        httpd.run = self
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": home, "TERM": "dumb",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{httpd.server_address[1]}", "ANTHROPIC_API_KEY": KEY,
            "ENABLE_TOOL_SEARCH": "false", "MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "30000",
            "MCP_SERVER_CONNECTION_BATCH_SIZE": "20", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        }
        words = [binary, "-p", "do it", "--model", "claude-sonnet-4-5", "--mcp-config", config, "--strict-mcp-config",
                 "--allowedTools", "mcp__s0"]
        self.process = subprocess.Popen(words, env=env, cwd=project, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            said, complaints = self.process.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            said, complaints = self.process.communicate()
        httpd.shutdown()
        if not self.asked or self.process.returncode != 0:
            sys.exit(f"{binary} failed ({self.process.returncode}): {said[-300:]} {complaints[-600:]}")
        self.noted = [json.loads(line) for line in open(self.log)]
        shutil.rmtree(self.root, ignore_errors=True)

    def sample(self):
        self.cpu, self.memory = own_cpu_ms(self.process.pid), memory_kb(self.process.pid)

    def lag_ms(self):
        """Returns how long after the last server's answer the first request came."""
        return (self.asked[0][0] - max(at for _, what, at in self.noted if what == "listed")) * 1000

    def call_ms(self):
        """Returns what a call costs beyond the server's own time."""
        own = [took * 1000 for _, what, took in self.noted if what == "called"]
        gaps = [(after[0] - before) * 1000 for before, after in zip(self.answered, self.asked[1:])]
        return statistics.median(gaps) - statistics.median(own)


def measure(name, binary, runs):
    def say(measure, value):
        print(f"{name}\t{measure}\t{value:.3f}", flush=True)

    without = [Run(binary, 1, 0) for _ in range(runs)]
    many = [Run(binary, N_SERVERS, 0) for _ in range(runs)]
    calls = [Run(binary, 1, N_CALLS) for _ in range(runs)]
    say("servers in the first request", min(run.asked[0][1] for run in many))
    say("first request after the last answer", statistics.median(run.lag_ms() for run in many))
    say("own CPU until the first request", statistics.median(run.cpu for run in many))
    say("own CPU of 19 more servers", statistics.median(run.cpu for run in many) - statistics.median(run.cpu for run in without))
    say("a call beyond the server's time", statistics.median(run.call_ms() for run in calls))
    more = statistics.median(run.memory for run in many) - statistics.median(run.memory for run in without)
    say("memory a connection", more / (N_SERVERS - 1))


options = argparse.ArgumentParser()
options.add_argument("--loci")
options.add_argument("--claude")
options.add_argument("--runs", type=int, default=3)
options = options.parse_args()
for program in ("loci", "claude"):
    if getattr(options, program):
        measure(program, getattr(options, program), options.runs)
