"""Takes the pictures of docs/terminal.md: a real run of the interface in tmux, against a scripted model on loopback.

Homes and projects are made for it, nothing of the person's is read, and the network is not needed. In the page a picture is
a block of text behind `<!-- picture: NAME -->`; what stands in the block is replaced. A picture that the page does not have,
or a mark without a picture, is an error.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WIDTH, HEIGHT = 90, 32
PATIENCE = 60
KEY = "sk-ant-test-00000000000000000000"
MODEL = "claude-sonnet-4-5"


# --- the model ---------------------------------------------------------------------------------------------------------


def bash(command, description):
    return ("Bash", {"command": command, "description": description})


BROKEN, MENDED = "local minutes=$((total / 60))", "local minutes=$((total % 3600 / 60))"
EDIT = ("Edit", {"file_path": "lib/duration.sh", "old_string": BROKEN, "new_string": MENDED})
#: What the model does, by the prompt: steps of words and calls, the last one without calls.
SCRIPT = {
    "mend": [
        ("", [("Read", {"file_path": "lib/duration.sh"})]),
        ("The minutes are taken from the whole time; they belong to the rest.", [EDIT]),
        ("Mended: `human_duration` takes the minutes from what the hours leave.", []),
    ],
    "commit": [
        ("One commit for each.", [bash("git add lib/duration.sh", "Stage the mend")]),
        ("", [bash('git commit -m "Mend the minutes"', "Commit the mend")]),
        ("", [bash("git add test.sh", "Stage the test")]),
        ("", [bash('git commit -m "Test whole days"', "Commit the test")]),
        ("Two commits: the mend, and its test.", []),
    ],
    "day": [("A day has 24 hours; `human_duration 86400` prints `24h`, as its callers expect.", [])],
}


def event(name, data):
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.reply("application/json", '{"data": [], "has_more": false}')

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if self.path.split("?")[0].endswith("/count_tokens"):
            return self.reply("application/json", '{"input_tokens": 10}')
        words, calls = self.step(body) if body.get("tools") else ("ok", [])
        # An answer that takes a moment has a length in the timeline.
        time.sleep(0.3)
        self.reply("text/event-stream", "".join(self.events(words, calls)))

    def step(self, body):
        """Finds the prompt that is being answered, and how many answers it had."""
        n_before = 0
        for message in reversed(body["messages"]):
            text = json.dumps(message["content"])
            if message["role"] == "assistant":
                n_before += 1
            elif "tool_result" not in text:
                known = [steps for word, steps in SCRIPT.items() if word in text.lower()]
                if known:
                    return known[0][min(n_before, len(known[0]) - 1)]
        return ("ok", [])

    def events(self, words, calls):
        usage = {"input_tokens": 1800, "output_tokens": 1, "cache_read_input_tokens": 9400, "cache_creation_input_tokens": 0}
        message = {
            "id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": MODEL, "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": usage,
        }
        yield event("message_start", {"type": "message_start", "message": message})
        blocks = [({"type": "text", "text": ""}, {"type": "text_delta", "text": words})] if words else []
        for name, given in calls:
            given = dict(given)
            if "file_path" in given:
                given["file_path"] = os.path.join(self.server.project, given["file_path"])
            block = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:20]}", "name": name, "input": {}}
            blocks.append((block, {"type": "input_json_delta", "partial_json": json.dumps(given)}))
        for idx, (block, delta) in enumerate(blocks):
            yield event("content_block_start", {"type": "content_block_start", "index": idx, "content_block": block})
            yield event("content_block_delta", {"type": "content_block_delta", "index": idx, "delta": delta})
            yield event("content_block_stop", {"type": "content_block_stop", "index": idx})
        reason = "tool_use" if calls else "end_turn"
        yield event("message_delta", {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 60}})
        yield event("message_stop", {"type": "message_stop"})

    def reply(self, kind, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


# --- the terminal ------------------------------------------------------------------------------------------------------


class Pane:
    """A program in a window of tmux, on a server of its own whose socket lies in the scratch directory."""

    def __init__(self, words, cwd, variables):
        self.socket = f"{variables['TMPDIR']}/{uuid.uuid4().hex[:8]}"
        own = ["env", "-i", *(f"{name}={value}" for name, value in variables.items()), *words]
        self.tmux("new-session", "-d", "-s", "picture", "-x", str(WIDTH), "-y", str(HEIGHT), "-c", cwd, *own)

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *words], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"tmux {words[0]}: {done.stderr.strip()}")
        return done.stdout

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", "picture")

    def type(self, text):
        self.tmux("send-keys", "-t", "picture", "-l", text)

    def press(self, *keys):
        self.tmux("send-keys", "-t", "picture", *keys)

    def wait(self, *patterns):
        """Waits until the screen has all of these and stands still; returns it."""
        deadline, before = time.monotonic() + PATIENCE, None
        while time.monotonic() < deadline:
            screen = self.screen()
            # The spinner and its seconds go on.
            still = re.sub(r"[\u2800-\u28ff]|\d", "", screen)
            if still == before and all(re.search(pattern, screen) for pattern in patterns):
                return screen
            before = still
            time.sleep(0.4)
        raise RuntimeError(f"The screen does not show {patterns}:\n{self.screen()}")

    def run(self, command, *patterns):
        """Types a command, and waits for what it shows."""
        self.type(command)
        self.wait(r"> " + re.escape(command))
        self.press("Enter")
        return self.wait(*patterns)

    def back(self):
        """Closes whatever panel is open."""
        self.press("Escape")
        self.wait(r"for shortcuts")

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)


def picture(screen, first=None, above=0):
    """Takes a part of the screen: from the row that shows `first`, and so many above it, to the last that shows anything."""
    rows = [row.rstrip() for row in screen.rstrip().split("\n")]
    if first:
        found = [idx for idx, row in enumerate(rows) if re.search(first, row)]
        if not found:
            raise RuntimeError(f"The screen has no row with {first}:\n{screen}")
        rows = rows[max(0, found[-1] - above) :]
    while rows and not rows[0]:
        rows.pop(0)
    return "\n".join(rows)


# --- the pictures ------------------------------------------------------------------------------------------------------


def git(project, *words):
    own = ["-c", "user.name=You", "-c", "user.email=you@example.com"]
    subprocess.run(["git", *own, *words], cwd=project, check=True, capture_output=True)


def make_home(root, demo):
    """Makes a home whose person trusts the project, and the project of the demo in it."""
    home, project = f"{root}/home", f"{root}/home/duration"
    os.makedirs(f"{project}/lib")
    for name, place in [("README.md", "README.md"), ("CLAUDE.md", "CLAUDE.md"), ("duration.sh", "lib/duration.sh"), ("test.sh", "test.sh")]:
        shutil.copy(f"{demo}/{name}", f"{project}/{place}")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "first")
    git(project, "config", "user.name", "You")
    git(project, "config", "user.email", "you@example.com")
    open(f"{project}/test.sh", "a").write("# whole days\n")
    state = {
        "hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {project: {"hasTrustDialogAccepted": True}},
    }
    json.dump(state, open(f"{home}/.claude.json", "w"))
    return home, project


def make_past(home, project):
    """Gives the home sessions of the last two weeks, in three projects and with three models."""
    now = datetime.datetime.now(datetime.timezone.utc)
    prompts = ["Why does the import hang?", "Split the parser in two", "Name the release", "Read the log of last night", "Write the page about dates"]
    for idx in range(26):
        cwd = [project, f"{home}/website", f"{home}/parser"][idx % 3]
        model = ["claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-5"][(idx * 5) % 3]
        began = now - datetime.timedelta(days=(idx * 11) % 14, hours=idx % 5 + 1)
        session, parent, lines = str(uuid.uuid4()), None, []
        for n in range(2 + idx % 4 * 2):
            own, stamp = str(uuid.uuid4()), (began + datetime.timedelta(minutes=n)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            message = {"role": "user", "content": prompts[idx % len(prompts)]}
            if n % 2:
                usage = {"input_tokens": 4_000 * (idx % 7 + 1), "output_tokens": 900 + idx * 40, "cache_read_input_tokens": 60_000, "cache_creation_input_tokens": 9_000}
                content = [{"type": "text", "text": "Done."}]
                message = {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": model, "content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
            lines.append({
                "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": cwd, "sessionId": session, "version": "2.1.300", "gitBranch": "main",
                "type": "assistant" if n % 2 else "user", "message": message, "uuid": own, "timestamp": stamp,
            })
            parent = own
        folder = f"{home}/.claude/projects/" + re.sub(r"[^A-Za-z0-9]", "-", cwd)
        os.makedirs(folder, exist_ok=True)
        path = f"{folder}/{session}.jsonl"
        open(path, "w").write("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        os.utime(path, (began.timestamp(),) * 2)


def take_demo(loci, home, variables):
    """What `loci demo` leaves on the screen, and what can be looked at from there."""
    pane = Pane([loci, "demo", "--fast"], home, variables)
    try:
        screen = pane.wait(r"Fixed: 7 passed", r"for shortcuts")
        yield "session", picture(screen, r"The minutes are taken")
        yield "help", picture(pane.run("/help", r"\[Commands\]"), r"· help")
        pane.back()
        yield "context", picture(pane.run("/context", r"\[Now\]", r"Free space"), r"Context ·")
        pane.back()
        pane.run("/rewind", r"Esc")
        pane.press("Enter")
        yield "rewind", picture(pane.wait(r"Summarise up to here", r"would change"), r"Back to before")
        pane.press("Escape")
        pane.wait(r"Esc close")
        pane.back()
        pane.press("C-o")
        yield "transcript", picture(pane.wait(r"q "))
        pane.type("q")
        pane.wait(r"for shortcuts")
        pane.run("/tui fullscreen", r"for shortcuts")
        pane.press("PageUp")
        yield "fullscreen", picture(pane.wait(r"Jump to the end"))
    finally:
        pane.close()


def take_session(loci, home, project, variables):
    """A session with questions, and the rooms that look back at it."""
    pane = Pane([loci, "--model", MODEL], project, variables)
    try:
        pane.wait(r"for shortcuts")
        screen = pane.run("mend the minutes", r"3\. No")
        yield "question", picture(screen, r"> mend the minutes")
        pane.type("1")
        pane.wait(r"Mended:", r"for shortcuts")
        pane.run("commit it, one file at a time", r"3\. No")
        for command in [r"Mend the minutes", r"git add test\.sh", r"Test whole days"]:
            pane.type("1")
            pane.wait(command, r"3\. No")
        pane.type("1")
        pane.wait(r"Two commits", r"for shortcuts")
        yield "fewer-prompts", picture(pane.run("/fewer-permission-prompts", r"git add", r"Esc"), r"Fewer questions")
        pane.back()
        yield "debug", picture(pane.run("/debug", r"Esc close"), r"The last turn took")
        pane.back()
        pane.run("/rewind", r"Esc")
        pane.press("Enter")
        pane.wait(r"Conversation only")
        pane.type("2")
        pane.wait(r"is back before")
        pane.press("C-u")
        pane.wait(r"for shortcuts")
        pane.run("and what about a whole day?", r"A day has 24 hours", r"for shortcuts")
        yield "rewind-tree", picture(pane.run("/rewind", r"Esc"), r"Rewind: go back")
        pane.back()
        pane.run("/usage", r"Esc")
        pane.press("Tab")
        yield "usage", picture(pane.wait(r"\[Days\]"), r"\[Days\]", above=1)
        pane.back()
        yield "resume", picture(pane.run("/resume", r"Resume a session", r"d ago"), r"Resume a session")
    finally:
        pane.close()


def replace(page, pictures):
    """Puts pictures behind their marks."""
    marks = re.findall(r"<!-- picture: ([\w-]+) -->", page)
    if sorted(marks) != sorted(pictures):
        raise RuntimeError(f"The page has marks for {sorted(marks)}; pictures are {sorted(pictures)}")
    for name, text in pictures.items():
        block = re.compile(r"(<!-- picture: %s -->\n```text\n).*?(\n```\n)" % name, re.S)
        page, n_found = block.subn(lambda found: found.group(1) + text + found.group(2), page)
        if n_found != 1:
            raise RuntimeError(f"No block of text stands behind the mark of `{name}`")
    return page


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--loci", required=True)
    parser.add_argument("--root", required=True, help="the repository")
    parser.add_argument("--show", action="store_true", help="print the pictures, and leave the page as it is")
    args = parser.parse_args()
    loci = os.path.abspath(args.loci)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # A short path: the name of the socket of tmux has a bound.
    root = tempfile.mkdtemp(prefix="loci-")
    try:
        home, project = make_home(root, f"{args.root}/crates/loci/src/demo/project")
        make_past(home, project)
        server.project = project
        variables = {
            "HOME": home, "PATH": os.environ["PATH"], "TERM": "tmux-256color", "LANG": "C.UTF-8", "TMPDIR": root, "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_port}",
        }
        pictures = dict(take_session(loci, home, project, variables))
        pictures.update(take_demo(loci, home, variables))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if args.show:
        print("\n\n".join(f"=== {name}\n{text}" for name, text in pictures.items()))
        return
    path = f"{args.root}/docs/terminal.md"
    page = open(path).read()
    open(path, "w").write(replace(page, pictures))
    print(f"{len(pictures)} pictures are in docs/terminal.md")


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(str(error))
