"""What a terminal interface costs the person in front of it, measured from outside.

Each program runs on a pseudo terminal of 120 by 40 against a scripted model on loopback, with a home and a project of its
own. Keys are capital letters that the scripted answers never contain, so that a letter that appears is the echo of a key.
Prints a line a figure: program, measure and value, with tabs between. `terminal.rs` makes the table.
"""

import argparse
import fcntl
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEYS = "QZJXKVWY"
WORDS = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore "
STREAM_SECONDS = 10
STREAM_BYTES = 100_000
DELTAS_A_SECOND = 200
TURNS = 300
KEY = "sk-ant-test-00000000000000000000"
QUERIES = [
    (re.compile(rb"\x1b\[6n"), b"\x1b[1;1R"),
    (re.compile(rb"\x1b\[0?c"), b"\x1b[?62;22c"),
    (re.compile(rb"\x1b\]1([01]);\?(?:\x07|\x1b\\)"), None),
    (re.compile(rb"\x1b\[\?u"), b"\x1b[?0u"),
    (re.compile(rb"\x1b\[\?2026\$p"), b"\x1b[?2026;2$y"),
]
ESCAPES = re.compile(rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[P_^][^\x1b]*\x1b\\|\x1b[ -/]*[0-~]")
CLEARS = re.compile(rb"\x1b\[[23]J")


# --- the model ---------------------------------------------------------------------------------------------------------


def sse(name, data):
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


class Model(BaseHTTPRequestHandler):
    """Answers by what the last prompt says: `stream` in many deltas, `turns` after so many calls, else a word."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.reply(200, b"")

    def do_GET(self):
        self.reply(200, b'{"data": [], "models": [], "has_more": false}')

    def do_POST(self):
        raw = self.body()
        path = self.path.split("?")[0]
        if path.endswith("/count_tokens"):
            return self.reply(200, b'{"input_tokens": 10}')
        body = json.loads(raw or b"{}")
        if path.endswith("/messages"):
            return self.anthropic(body)
        if path.endswith("/responses"):
            return self.openai(body)
        return self.reply(404, b"{}")

    def body(self):
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        out = b""
        while True:
            size = int(self.rfile.readline().strip() or b"0", 16)
            out += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                return out

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def write(self, data):
        self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")
        self.wfile.flush()

    def end(self):
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def deltas(self, wanted):
        """Yields the texts of an answer, at the pace of a stream where one was asked for."""
        if wanted != "stream":
            yield "done"
            return
        n = STREAM_SECONDS * DELTAS_A_SECOND
        size = STREAM_BYTES // n
        text = (WORDS * (STREAM_BYTES // len(WORDS) + 1))[:STREAM_BYTES]
        began = time.perf_counter()
        for idx in range(n):
            piece = text[idx * size : (idx + 1) * size]
            if idx % 20 == 19:
                piece = piece[:-2] + "\n\n"
            yield piece
            pause = began + (idx + 1) / DELTAS_A_SECOND - time.perf_counter()
            if pause > 0:
                time.sleep(pause)

    def wanted(self, body, texts, n_calls):
        if not body.get("tools"):
            return "word", 0
        last = next((text for text in reversed(texts) if "stream" in text or "turns" in text or "word" in text), "word")
        last = last.rsplit("\n", 1)[-1]
        if "turns" in last and n_calls < TURNS:
            return "call", n_calls
        return ("stream" if "stream" in last else "word"), n_calls

    def anthropic(self, body):
        messages = body.get("messages", [])
        texts, n_calls = [], 0
        for message in messages:
            content = message.get("content", [])
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if message["role"] == "user" and block.get("type") == "text":
                    texts.append(block["text"])
                n_calls += block.get("type") == "tool_use"
        wanted, n = self.wanted(body, texts, n_calls)
        usage = {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
        message = {"id": "msg_" + uuid.uuid4().hex, "type": "message", "role": "assistant", "model": body.get("model"), "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        if not body.get("stream"):
            message["content"] = [{"type": "text", "text": "done"}]
            message["stop_reason"] = "end_turn"
            return self.reply(200, json.dumps(message).encode())
        self.begin()
        self.write(sse("message_start", {"type": "message_start", "message": message}))
        if wanted == "call":
            block = {"type": "tool_use", "id": f"toolu_{n:024d}", "name": "Read", "input": {}}
            self.write(sse("content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}))
            delta = {"type": "input_json_delta", "partial_json": json.dumps({"file_path": self.server.cwd + "/README.md"})}
            self.write(sse("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}))
        else:
            block = {"type": "text", "text": ""}
            self.write(sse("content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}))
            for text in self.deltas(wanted):
                self.write(sse("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}))
        self.write(sse("content_block_stop", {"type": "content_block_stop", "index": 0}))
        reason = "tool_use" if wanted == "call" else "end_turn"
        self.write(sse("message_delta", {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 20}}))
        self.write(sse("message_stop", {"type": "message_stop"}))
        self.end()

    def openai(self, body):
        texts, n_calls = [], 0
        for item in body.get("input", []):
            if item.get("type") == "message" and item.get("role") == "user":
                texts += [part.get("text", "") for part in item.get("content", [])]
            n_calls += item.get("type") == "function_call"
        wanted, n = self.wanted(body, texts, n_calls)
        response = {"id": "resp_" + uuid.uuid4().hex}
        self.begin()
        self.write(sse("response.created", {"type": "response.created", "response": response}))
        if wanted == "call":
            arguments = json.dumps({"cmd": "cat README.md", "command": ["cat", "README.md"]})
            name = next((tool["name"] for tool in body["tools"] if tool.get("name") in ("exec_command", "shell", "shell_command")), "shell")
            item = {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": name, "arguments": arguments}
        else:
            item = {"type": "message", "id": "msg_" + uuid.uuid4().hex, "role": "assistant", "content": []}
            self.write(sse("response.output_item.added", {"type": "response.output_item.added", "output_index": 0, "item": item}))
            whole = ""
            for text in self.deltas(wanted):
                whole += text
                self.write(sse("response.output_text.delta", {"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0, "delta": text}))
            item = {**item, "content": [{"type": "output_text", "text": whole, "annotations": []}]}
        self.write(sse("response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}))
        usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110}
        self.write(sse("response.completed", {"type": "response.completed", "response": {**response, "usage": usage}}))
        self.end()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    cwd = ""


# --- the terminal ------------------------------------------------------------------------------------------------------


class Screen:
    """A program on a pseudo terminal; what it writes is kept with its time."""

    def __init__(self, argv, cwd, env):
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~termios.ECHO  # what appears is the program's own doing
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self.master = master
        self.data = bytearray()
        self.changed = threading.Condition()
        self.is_open = True
        self.began = time.perf_counter()

        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=slave, stdout=slave, stderr=slave, preexec_fn=own_terminal)
        os.close(slave)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        tail = b""
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            with self.changed:
                if not data:
                    self.is_open = False
                self.data += data
                self.changed.notify_all()
            if not data:
                return
            tail = self.answer(tail + data)

    def answer(self, data):
        """Answers what programs ask a terminal; returns what may be the beginning of a question."""
        for question, reply in QUERIES:
            for found in question.finditer(data):
                text = reply or b"\x1b]1%s;rgb:0000/0000/0000\x1b\\" % found.group(1)
                os.write(self.master, text)
            data = question.sub(b"", data)
        start = data.rfind(b"\x1b")
        return data[start:] if start >= 0 and len(data) - start < 16 else b""

    def send(self, data):
        view = memoryview(data)
        while view:
            _, writable, _ = select.select([], [self.master], [], 30)
            if not writable:
                raise TimeoutError("the program does not read its keys")
            view = view[os.write(self.master, view[:4096]) :]

    def mark(self):
        with self.changed:
            return len(self.data)

    def text(self, since=0):
        with self.changed:
            data = bytes(self.data[since:])
        return ESCAPES.sub(b"", data)

    def wait_for(self, pattern, since=0, limit=60):
        """Waits until what was written shows the pattern; returns when."""
        pattern = re.compile(pattern)
        deadline = time.perf_counter() + limit
        with self.changed:
            while True:
                if pattern.search(ESCAPES.sub(b"", bytes(self.data[since:]))):
                    return time.perf_counter()
                left = deadline - time.perf_counter()
                if left <= 0 or not self.is_open:
                    raise TimeoutError(f"nothing shows {pattern.pattern!r}: {bytes(self.data[-600:])!r}")
                self.changed.wait(left)

    def quiet(self, seconds, limit=60):
        """Waits until nothing was written for so long."""
        deadline = time.perf_counter() + limit
        with self.changed:
            while time.perf_counter() < deadline:
                before = len(self.data)
                self.changed.wait_for(lambda: len(self.data) != before, timeout=seconds)
                if len(self.data) == before:
                    return

    def family(self):
        children = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                fields = open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(name))
        found, todo = [], [self.process.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            todo += children.get(pid, [])
        return found

    def cpu(self):
        """Returns the CPU time of the program and all it started, in seconds.

        Processes that live are asked by their clock, which has no steps; /proc has steps of 10 ms, as much as some rows are.
        """
        seconds = 0.0
        for pid in self.family():
            try:
                fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
                own = time.clock_gettime((~pid << 3) | 2)
            except OSError:
                continue
            seconds += own + sum(int(field) for field in fields[13:15]) / os.sysconf("SC_CLK_TCK")
        return seconds

    def memory(self):
        """Returns the resident memory of the largest process, in megabytes."""
        largest = 0
        for pid in self.family():
            try:
                found = re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())
            except OSError:
                continue
            largest = max(largest, int(found.group(1)) if found else 0)
        return largest / 1024

    def close(self):
        for pid in reversed(self.family()):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self.process.wait()
        os.close(self.master)


# --- the programs ------------------------------------------------------------------------------------------------------


class Program:
    def __init__(self, name, path, port):
        self.name, self.path, self.port = name, path, port

    def place(self):
        """Makes a home and a project; returns both."""
        root = tempfile.mkdtemp(prefix="terminal-bench-")
        home, project = root + "/home", root + "/project"
        os.makedirs(home + "/.claude")
        os.makedirs(home + "/.codex")
        os.makedirs(project)
        open(project + "/README.md", "w").write("# hello\n")
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
            subprocess.run(git + words, cwd=project, check=True)
        state = {
            "hasCompletedOnboarding": True,
            "lastOnboardingVersion": "99.0.0",
            "theme": "dark",
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {project: {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True, "allowedTools": []}},
        }
        json.dump(state, open(home + "/.claude.json", "w"))
        config = (
            'model = "gpt-5"\nmodel_provider = "mock"\ncheck_for_update_on_startup = false\n'
            f'[model_providers.mock]\nname = "mock"\nbase_url = "http://127.0.0.1:{self.port}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
            f'[projects."{project}"]\ntrust_level = "trusted"\n'
        )
        open(home + "/.codex/config.toml", "w").write(config)
        return root, home, project

    def start(self, home, project, words=()):
        env = {
            "PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color", "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.port}", "ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": "sk-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
        }
        more = ["--dangerously-bypass-approvals-and-sandbox"] if self.name == "codex" else []
        return Screen([self.path, *more, *words], project, env)

    @property
    def prompt(self):
        return {"loci": rb"[>\xe2]", "claude": "❯".encode(), "codex": "›".encode()}[self.name]


def echo(screen, key, limit=20):
    """Presses a key; returns how long its echo took, in milliseconds."""
    since = screen.mark()
    pressed = time.perf_counter()
    screen.send(key.encode())
    return (screen.wait_for(key.encode(), since, limit) - pressed) * 1000


def echoes(screen, n, pause):
    times = []
    for idx in range(n):
        times.append(echo(screen, KEYS[idx % len(KEYS)]))
        time.sleep(pause / 2)
        screen.send(b"\x7f")
        time.sleep(pause / 2)
    return times


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def ask(screen, text):
    """Types a prompt and sends it."""
    screen.send(text.encode())
    screen.quiet(0.3, 5)
    since = screen.mark()
    screen.send(b"\r")
    return since


def synthetic(home, project, n_messages):
    """Writes a session of so many messages; returns its id."""
    session = str(uuid.uuid4())
    folder = home + "/.claude/projects/" + re.sub(r"[^A-Za-z0-9]", "-", project)
    os.makedirs(folder)
    parent = None
    with open(f"{folder}/{session}.jsonl", "w") as file:
        for idx in range(n_messages):
            is_user = idx % 2 == 0
            text = f"message {idx} {WORDS}" if idx + 1 < n_messages else "the end is HERE"
            message = {"role": "user", "content": text}
            if not is_user:
                usage = {"input_tokens": 10, "output_tokens": 10}
                message = {"id": f"msg_{idx}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
            own = str(uuid.uuid4())
            entry = {
                "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": project, "sessionId": session, "version": "2.1.300",
                "gitBranch": "master", "type": "user" if is_user else "assistant", "message": message, "uuid": own,
                "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - n_messages + idx)),
            }
            file.write(json.dumps(entry) + "\n")
            parent = own
    return session


def measure_start(program, report):
    root, home, project = program.place()
    screen = program.start(home, project)
    painted = screen.wait_for(program.prompt)
    report("prompt painted", (painted - screen.began) * 1000)
    echo(screen, "Q")
    report("first key echoed", (time.perf_counter() - screen.began) * 1000)
    screen.quiet(1.0, 10)
    report("memory after start", screen.memory())
    screen.close()
    shutil.rmtree(root, ignore_errors=True)


def measure_session(program, report):
    root, home, project = program.place()
    program.server.cwd = project
    screen = program.start(home, project)
    screen.wait_for(program.prompt)
    screen.quiet(1.5, 15)

    cpu = screen.cpu()
    idle = echoes(screen, 60, 0.06)
    report("CPU a key", (screen.cpu() - cpu) * 1000 / 120)
    report("key echo idle, median", percentile(idle, 0.5))
    report("key echo idle, p95", percentile(idle, 0.95))
    report("memory after 120 keys", screen.memory())

    screen.quiet(1.0, 10)
    cpu, since = screen.cpu(), screen.mark()
    time.sleep(10)
    report("CPU idle 10 s", (screen.cpu() - cpu) * 1000)
    report("bytes idle 10 s", screen.mark() - since)

    cpu = screen.cpu()
    since = ask(screen, "stream")
    time.sleep(STREAM_SECONDS)
    screen.quiet(1.5, 30)
    with screen.changed:
        written = bytes(screen.data[since:])
    report("CPU streaming", (screen.cpu() - cpu) * 1000)
    report("bytes a streamed character", len(written) / STREAM_BYTES)
    report("full clears", len(CLEARS.findall(written)))

    since = ask(screen, "stream")
    time.sleep(1.0)
    streaming = echoes(screen, 60, 0.12)
    report("key echo streaming, median", percentile(streaming, 0.5))
    report("key echo streaming, p95", percentile(streaming, 0.95))
    report("key echo streaming, slowest", max(streaming))
    time.sleep(2)
    screen.quiet(1.5, 30)

    pasted = (WORDS * (1_000_000 // len(WORDS))).strip()
    pressed = time.perf_counter()
    since = screen.mark()
    screen.send(b"\x1b[200~" + pasted.encode() + b"\x1b[201~Q")
    report("paste of 1 MB to the next key", (screen.wait_for(b"Q", since, 60) - pressed) * 1000)
    screen.close()
    shutil.rmtree(root, ignore_errors=True)


def measure_long(program, report):
    root, home, project = program.place()
    program.server.cwd = project
    screen = program.start(home, project)
    screen.wait_for(program.prompt)
    screen.quiet(1.5, 15)
    since = ask(screen, "turns")
    screen.wait_for(rb"done", since, 240)
    screen.quiet(2.0, 30)
    report(f"memory after {TURNS} turns", screen.memory())
    late = echoes(screen, 60, 0.06)
    report(f"key echo after {TURNS} turns, p95", percentile(late, 0.95))
    screen.close()
    shutil.rmtree(root, ignore_errors=True)


def measure_resume(program, report):
    if program.name == "codex":
        return
    root, home, project = program.place()
    session = synthetic(home, project, 2000)
    screen = program.start(home, project, ["-r", session])
    seen = screen.wait_for(rb"HERE")
    report("resume of 2,000 messages", (seen - screen.began) * 1000)
    screen.close()
    shutil.rmtree(root, ignore_errors=True)


SESSIONS, SKILLS, SERVERS = 10_000, 500, 50


def crowded(home, project):
    """Gives a home many sessions of the project, skills, and servers that nobody answers for."""
    folder = home + "/.claude/projects/" + re.sub(r"[^A-Za-z0-9]", "-", project)
    os.makedirs(folder)
    now = time.time()
    for idx in range(SESSIONS):
        session = str(uuid.uuid4())
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now - SESSIONS + idx))
        entry = {
            "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": project, "sessionId": session, "version": "2.1.300", "gitBranch": "master",
            "type": "user", "message": {"role": "user", "content": f"session {idx} {WORDS * 4}"}, "uuid": str(uuid.uuid4()), "timestamp": stamp,
        }
        path = f"{folder}/{session}.jsonl"
        open(path, "w").write(json.dumps(entry, separators=(",", ":")) + "\n")
        os.utime(path, (now - SESSIONS + idx,) * 2)
    for idx in range(SKILLS):
        os.makedirs(f"{home}/.claude/skills/skill-{idx:03}")
        text = f"---\nname: skill-{idx:03}\ndescription: does the thing of number {idx}\n---\n{WORDS * 10}\n"
        open(f"{home}/.claude/skills/skill-{idx:03}/SKILL.md", "w").write(text)
    state = json.load(open(home + "/.claude.json"))
    # A port that nothing listens on refuses at once.
    state["mcpServers"] = {f"server-{idx:02}": {"type": "http", "url": "http://127.0.0.1:9/mcp"} for idx in range(SERVERS)}
    json.dump(state, open(home + "/.claude.json", "w"))


#: Every other panel; what can be done in one ends with how it is closed.
OTHER_PANELS = (
    "/agents /config /context /debug /diff /effort /export /fewer-permission-prompts /help /hooks /memory /model /permissions /plugin "
    "/rename /rewind /sandbox /search /status /tasks /theme /usage"
).split()


def open_panel(screen, command):
    """Types a command, and sends it; returns since when."""
    screen.send(command.encode())
    screen.quiet(0.5, 5)
    since, pressed = screen.mark(), time.perf_counter()
    screen.send(b"\r")
    return since, pressed


def close_panel(screen):
    screen.quiet(0.5, 10)
    for _ in range(2):
        screen.send(b"\x1b")
        screen.quiet(0.5, 5)


def measure_panels(program, report):
    """How long a panel takes to be there, and to show what it lists, where there is a lot of it."""
    if program.name != "loci":
        return
    root, home, project = program.place()
    crowded(home, project)
    screen = program.start(home, project)
    screen.wait_for(program.prompt)
    screen.quiet(2.0, 30)
    panels = [
        ("/resume", rb"Resume a session", rb"session 9999", "10,000 sessions, first time"),
        ("/resume", rb"Resume a session", rb"session 9999", "10,000 sessions, again"),
        ("/skills", rb"Skills", rb"skill-0", "500 skills"),
        ("/mcp", rb"MCP", rb"server-00", "50 servers"),
    ]
    for command, title, row, name in panels:
        since, pressed = open_panel(screen, command)
        report(f"panel there, {name}", (screen.wait_for(title, since, 30) - pressed) * 1000)
        report(f"panel filled, {name}", (screen.wait_for(row, since, 30) - pressed) * 1000)
        close_panel(screen)
    there = {}
    for command in OTHER_PANELS:
        since, pressed = open_panel(screen, command)
        there[command] = (screen.wait_for(b"Esc", since, 10) - pressed) * 1000
        close_panel(screen)
    slowest = sorted(there, key=there.get, reverse=True)[:3]
    print("slowest of the others: " + ", ".join(f"{command} {there[command]:.1f} ms" for command in slowest), file=sys.stderr)
    report("panel there, slowest of the others", there[slowest[0]])
    screen.close()
    shutil.rmtree(root, ignore_errors=True)


READER = """import os, termios, tty
tty.setraw(0)
os.write(1, b'ready')
while True:
    data = os.read(0, 65536)
    if data.endswith(b'Q'):
        os.write(1, b'Q')
"""


def measure_floor(program, report):
    """What a program takes to be given 1 MB through a terminal that does nothing with it."""
    if program.name != "loci":
        return
    root, home, project = program.place()
    screen = Screen([sys.executable, "-c", READER], project, {"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm"})
    screen.wait_for(rb"ready")
    pasted = (WORDS * (1_000_000 // len(WORDS))).strip()
    for _ in range(5):
        since, pressed = screen.mark(), time.perf_counter()
        screen.send(b"\x1b[200~" + pasted.encode() + b"\x1b[201~Q")
        report("1 MB to a program that only reads", (screen.wait_for(b"Q", since, 60) - pressed) * 1000)
        screen.quiet(0.3, 5)
    screen.close()
    shutil.rmtree(root, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    for name in ("loci", "claude", "codex"):
        parser.add_argument("--" + name)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--load", type=int, default=0, help="so many processes that do nothing but compute")
    parser.add_argument("--only", default="start,session,long,resume,panels,floor")
    args = parser.parse_args()
    server = Server(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.load)]
    try:
        programs = [Program(name, getattr(args, name), server.server_port) for name in ("loci", "claude", "codex") if getattr(args, name)]
        measures = {
            "start": measure_start, "session": measure_session, "long": measure_long, "resume": measure_resume,
            "panels": measure_panels, "floor": measure_floor,
        }
        for kind in args.only.split(","):
            for _ in range(args.runs if kind in ("start", "resume") else 1):
                for program in programs:
                    program.server = server

                    def report(measure, value, program=program):
                        print(program.name, measure, f"{value:.3f}", sep="\t", flush=True)

                    try:
                        measures[kind](program, report)
                    except (TimeoutError, OSError) as error:
                        print(f"{program.name}: {kind}: {error}", file=sys.stderr)
    finally:
        for process in busy:
            process.kill()


main()
