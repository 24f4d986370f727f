"""The scripted model's answers, as the Messages API streams them: what the measuring scripts share."""

import json
import uuid
from http.server import BaseHTTPRequestHandler


def sse(data):
    """One event of a stream."""
    return f"event: {data['type']}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def message_of(model, usage, content=(), reason=None):
    """The message that an answer is."""
    return {"id": f"msg_{uuid.uuid4().hex[:20]}", "type": "message", "role": "assistant", "model": model,
            "content": list(content), "stop_reason": reason, "stop_sequence": None, "usage": usage}


def stop_reason(block):
    return "tool_use" if block["type"] == "tool_use" else "end_turn"


def streamed(block, model, usage):
    """An answer of one block, a text or a call, as a stream."""
    is_call = block["type"] == "tool_use"
    begin = {**block, "input": {}} if is_call else {"type": "text", "text": ""}
    delta = ({"type": "input_json_delta", "partial_json": json.dumps(block["input"])} if is_call
             else {"type": "text_delta", "text": block["text"]})
    reason = {"stop_reason": stop_reason(block), "stop_sequence": None}
    return b"".join(map(sse, [
        {"type": "message_start", "message": message_of(model, usage)},
        {"type": "content_block_start", "index": 0, "content_block": begin},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": reason, "usage": usage},
        {"type": "message_stop"},
    ]))


def call_id():
    """A fresh id of a call."""
    return f"toolu_{uuid.uuid4().hex[:24]}"


class AnswerHandler(BaseHTTPRequestHandler):
    """Answers without a log; `do_POST` is each script's own.

    An answer leaves in one piece and at once: two writes under Nagle's rule would wait for the client's delayed
    acknowledgement, which is up to 40 ms that no program could save."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.reply(b"")

    def do_GET(self):
        self.reply(b'{"data":[]}')

    def reply(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def answer(self, block, body, usage=None):
        """Answers a request with one block, in the way that it asks for."""
        usage = usage or {"input_tokens": 10, "output_tokens": 1}
        if body.get("stream"):
            return self.reply(streamed(block, body["model"], usage), "text/event-stream")
        self.reply(json.dumps(message_of(body["model"], usage, [block], stop_reason(block))).encode())
