"""What the requests beside a conversation (notes, memories, summaries) cost, as a share of the session's cost.

loci answers a stream of prompts against a scripted model on loopback, with a home of its own. Each turn reads a file and
answers. The model charges as the real one does: what a request shares with an earlier one of the same model, byte for byte
and cache marks aside, is read from the cache, the rest is written to it. Requests beside the conversation are answered with
an edit of some length and then with a word. Prints a line a figure: program, measure and value, with tabs between.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from http.server import ThreadingHTTPServer

from scripted_answer import AnswerHandler

KEY = "sk-ant-test-00000000000000000000"
# Dollars a million tokens: input, output, read from the cache, written to it.
PRICES = {"opus": (4, 20, 0.4, 5), "sonnet": (2, 10, 0.2, 2.5), "haiku": (0.1, 0.5, 0.01, 0.125)}
MODEL = "claude-sonnet-5-5"
MARKS = re.compile(r',?"cache_control":\{[^{}]*\}')
WORK = "please do step"
SIDE_INPUT = "- " + "what was found and decided in this step, in a few words. " * 24


def price(model):
    return next(value for name, value in PRICES.items() if name in model)


class Model(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, n_files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock, self.n_files = threading.Lock(), n_files
        self.seen, self.n_call = {}, 0
        self.cost, self.n = {"main": 0.0, "side": 0.0}, {"main": 0, "side": 0}

    def reply(self, body, request):
        """What is answered, and what it costs."""
        last = request["messages"][-1]["content"]
        blocks = [{"type": "text", "text": last}] if isinstance(last, str) else last
        result = next((b for b in reversed(blocks) if b.get("type") == "tool_result"), None)
        texts = " ".join(b.get("text", "") for b in blocks if b.get("type") == "text")
        with self.lock:
            self.n_call += 1
            n = self.n_call
        if result is not None and "_main" in result["tool_use_id"] and not texts.strip():
            kind, block = "main", {"type": "text", "text": "This is what came of it. " * 60}
        elif WORK in texts and "_side" not in json.dumps(blocks):
            step = int(re.findall(WORK + r" (\d+)", texts)[-1])
            path = f"{self.project}/file{step % self.n_files}.txt"
            kind, block = "main", {"type": "tool_use", "id": f"toolu_main{n}", "name": "Read", "input": {"file_path": path}}
        elif result is not None and "_side" in result["tool_use_id"]:
            kind, block = "side", {"type": "text", "text": "Noted."}
        else:
            edit = {"file_path": f"{self.project}/none.md", "old_string": "none", "new_string": SIDE_INPUT}
            kind, block = "side", {"type": "tool_use", "id": f"toolu_side{n}", "name": "Edit", "input": edit}
        if kind == "side" and not any(tool["name"] == "Edit" for tool in request.get("tools", [])):
            block = {"type": "text", "text": SIDE_INPUT}
        model, text = request["model"], MARKS.sub("", body[body.index('"system"'):] if '"system"' in body else body)
        with self.lock:
            earlier = self.seen.setdefault(model, [])
            cached = max((len(os.path.commonprefix([text, it])) for it in earlier), default=0)
            earlier.append(text)
            del earlier[:-8]
        output = len(json.dumps(block)) // 4
        usage = {"input_tokens": 3, "cache_read_input_tokens": cached // 4,
                 "cache_creation_input_tokens": (len(text) - cached) // 4, "output_tokens": output}
        rates = price(model)
        cost = (3 * rates[0] + output * rates[1] + cached // 4 * rates[2] + usage["cache_creation_input_tokens"] * rates[3]) / 1e6
        with self.lock:
            self.cost[kind] += cost
            self.n[kind] += 1
        return block, usage


class Handler(AnswerHandler):
    def do_POST(self):
        text = self.rfile.read(int(self.headers["content-length"])).decode()
        body = json.loads(text)
        block, usage = self.server.reply(text, body)
        self.answer(block, body, usage)


def run(loci, n_prompts):
    """Plays a session; returns its cost by the result, by `stats`, and by the model's own accounts."""
    root = tempfile.mkdtemp(prefix="loci-bench-side-")
    try:
        home, project = os.path.join(root, "home"), os.path.join(root, "project")
        os.makedirs(home), os.makedirs(project)
        model = Model(n_prompts)
        model.project = project
        for n in range(n_prompts):
            with open(os.path.join(project, f"file{n}.txt"), "w") as file:
                file.write("".join(f"line {line} of file {n}: some words that are read\n" for line in range(120)))
        threading.Thread(target=model.serve_forever, daemon=True).start()
        env = {"HOME": home, "TMPDIR": root, "PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": KEY,
               "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.server_address[1]}"}
        command = [loci, "-p", "--verbose", "--model", MODEL, "--input-format", "stream-json", "--output-format", "stream-json"]
        child = subprocess.Popen(command, cwd=project, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        total = 0.0
        for n in range(n_prompts):
            child.stdin.write(json.dumps({"type": "user", "message": {"role": "user", "content": f"{WORK} {n}"}}) + "\n")
            child.stdin.flush()
            for line in child.stdout:
                frame = json.loads(line)
                if frame["type"] == "result":
                    total = frame["total_cost_usd"]
                    break
        child.stdin.close()
        child.stdout.read()
        child.wait(timeout=60)
        stats = json.loads(subprocess.run([loci, "stats", "--json"], cwd=project, env=env, capture_output=True, text=True).stdout)
        model.shutdown()
        return total, stats["costUSD"], model
    finally:
        shutil.rmtree(root, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--loci", required=True)
    parser.add_argument("--prompts", type=int, default=60)
    args = parser.parse_args()
    total, stats, model = run(args.loci, args.prompts)
    charged = model.cost["main"] + model.cost["side"]
    for measure, value in [
        ("requests of the conversation", model.n["main"]),
        ("requests beside it", model.n["side"]),
        ("charged by the model", charged * 100),
        ("told by the last result", total * 100),
        ("told by `loci stats`", stats * 100),
        ("share of the requests beside it", model.cost["side"] / charged * 100),
    ]:
        print(f"loci\t{measure}\t{value:.3f}", flush=True)


main()
