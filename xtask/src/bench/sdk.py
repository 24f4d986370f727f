"""What a client that drives the program costs a run, measured from outside.

The same work three times over: by `-p`, by a client of the stream protocol that writes all its lines at once, and by the
official Python SDK where a Python that has it is named (`--sdk`). A scripted model on loopback notes when it is asked. Prints
a line a figure: program, measure and value, with tabs between. `sdk.rs` makes the table.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from http.server import ThreadingHTTPServer

from scripted_answer import AnswerHandler, call_id

N_TURNS = 60
KEY = "sk-ant-test-00000000000000000000"
MODEL = "claude-sonnet-4-5"

# What the SDK runs: it notes when the process is started and when the prompt is written.
DRIVER = """
import sys, time, warnings, anyio
from claude_agent_sdk import ClaudeAgentOptions, query
warnings.simplefilter("ignore")
noted = {}
open_process = anyio.open_process
async def noting(*args, **kwargs):
    noted.setdefault("exec", time.monotonic())
    return await open_process(*args, **kwargs)
anyio.open_process = noting
async def main():
    options = ClaudeAgentOptions(cli_path=sys.argv[1], model=sys.argv[2], allowed_tools=["Read"])
    async for message in query(prompt="do it", options=options):
        pass
    print(noted["exec"])
anyio.run(main)
"""


class Model(AnswerHandler):
    """Has a file read so many times, then ends."""

    def do_POST(self):
        run = self.server.run
        body = self.rfile.read(int(self.headers["content-length"]))
        at = time.monotonic()
        body = json.loads(body)
        n_turns = sum(1 for message in body["messages"] if message["role"] == "assistant")
        is_main = len(body.get("tools", [])) > 3
        if is_main:
            run.asked.append(at)
        is_call = is_main and n_turns < N_TURNS
        call = {"type": "tool_use", "id": call_id(), "name": "Read",
                "input": {"file_path": f"{run.project}/a.txt", "limit": 1 + n_turns}}
        self.answer(call if is_call else {"type": "text", "text": "Done."}, body)
        if is_main:
            run.answered.append(time.monotonic())


class Run:
    """One prompt, by one way."""

    def __init__(self, binary, way, python):
        self.asked, self.answered = [], []
        root = tempfile.mkdtemp(prefix="bench-sdk-")
        home, self.project = f"{root}/home", f"{root}/project"
        os.makedirs(home), os.makedirs(self.project)
        open(f"{self.project}/a.txt", "w").write("hi\n" * 100)
        httpd = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        httpd.run = self
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": home, "TERM": "dumb",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{httpd.server_address[1]}", "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK": "1",
        }
        words, lines = [binary, "-p", "do it", "--model", MODEL, "--allowedTools", "Read"], []
        if way == "client":
            words = [binary, "--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--model", MODEL,
                     "--allowedTools", "Read", "--permission-prompt-tool", "stdio"]
            lines = [{"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize", "hooks": None}},
                     {"type": "user", "message": {"role": "user", "content": "do it"}}]
        if way == "sdk":
            words = [python, "-c", DRIVER, binary, MODEL]
        began = time.monotonic()
        process = subprocess.Popen(words, env=env, cwd=self.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        said, _ = process.communicate("".join(json.dumps(line) + "\n" for line in lines).encode(), timeout=120)
        httpd.shutdown()
        shutil.rmtree(root, ignore_errors=True)
        if process.returncode != 0 or len(self.asked) != N_TURNS + 1:
            raise SystemExit(f"{way} failed ({process.returncode}, {len(self.asked)} requests): {said[-500:]}")
        began = float(said.split()[-1]) if way == "sdk" else began
        self.first_ms = (self.asked[0] - began) * 1000
        gaps = [(after - before) * 1000 for before, after in zip(self.answered, self.asked[1:])]
        self.gap_ms = statistics.median(gaps)


WAYS = {"alone": "`-p`", "client": "a client's lines", "sdk": "the official SDK"}


def measure(name, binary, options):
    ways = [way for way in WAYS if way != "sdk" or options.sdk]
    runs = {way: [] for way in ways}
    for _ in range(options.runs):
        for way in ways:
            runs[way].append(Run(binary, way, options.sdk))
    for what, of in [("exec to first request", "first_ms"), ("gap", "gap_ms")]:
        for way in ways:
            value = statistics.median(getattr(run, of) for run in runs[way])
            print(f"{name}\t{what}, {WAYS[way]}\t{value:.3f}", flush=True)


options = argparse.ArgumentParser()
options.add_argument("--loci")
options.add_argument("--claude")
options.add_argument("--sdk")
options.add_argument("--runs", type=int, default=5)
options = options.parse_args()
for program in ("loci", "claude"):
    if getattr(options, program):
        measure(program, getattr(options, program), options)
