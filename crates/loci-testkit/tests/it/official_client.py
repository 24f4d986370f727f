"""Drives a scripted model with the official Anthropic client and prints what the client made of it.

Usage: official_client.py BASE_URL SCENARIO
Prints one JSON value; the Rust test beside this file compares it.
"""
import json
import sys

import anthropic

BASE_URL, SCENARIO = sys.argv[1:]
CLIENT = anthropic.Anthropic(base_url=BASE_URL, api_key="sk-ant-test", max_retries=3)
READ = {"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}


def asked(prompt="hi", **more):
    messages = [{"role": "user", "content": prompt}]
    return {"model": "claude-sonnet-4-5", "max_tokens": 2000, "messages": messages, "tools": [READ], **more}


def as_dict(message):
    return message.model_dump(mode="json", exclude_none=True)


def stream():
    """A streamed answer: the client's own accumulation, and the texts as they came."""
    thinking = {"type": "enabled", "budget_tokens": 1024}
    with CLIENT.messages.stream(**asked(thinking=thinking)) as answer:
        texts = list(answer.text_stream)
        message = answer.get_final_message()
    return {"texts": texts, "message": as_dict(message), "request_id": answer.request_id}


def raw_events():
    """The types of the raw events."""
    return [event.type for event in CLIENT.messages.create(**asked(), stream=True)]


def whole():
    """An answer without a stream."""
    message = CLIENT.messages.create(**asked())
    return {"message": as_dict(message), "request_id": message._request_id}


def tool_loop():
    """Two requests: the model calls a tool, gets its result, and answers."""
    messages = [{"role": "user", "content": "What does a.txt say?"}]
    results = []
    while True:
        with CLIENT.messages.stream(**{**asked(), "messages": messages}) as answer:
            message = answer.get_final_message()
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return {"results": results, "text": message.content[0].text, "stop_reason": message.stop_reason}
        messages.append({"role": "assistant", "content": message.content})
        answers = [{"type": "tool_result", "tool_use_id": call.id, "content": f"read {call.input['path']}"} for call in calls]
        messages.append({"role": "user", "content": answers})
        results.append([call.id for call in calls])


def count_tokens():
    """The number of tokens of a request."""
    request = asked()
    del request["max_tokens"]
    return CLIENT.messages.count_tokens(**request).input_tokens


def models():
    """The models on offer."""
    return [model.id for model in CLIENT.models.list()]


def failure():
    """What the client raises when a streamed request fails, and the text it had by then."""
    texts = []
    try:
        with CLIENT.messages.stream(**asked()) as answer:
            texts.extend(answer.text_stream)
        return {"raised": None, "texts": texts}
    except anthropic.APIStatusError as error:
        return {"raised": type(error).__name__, "status": error.status_code, "body": error.body, "texts": texts}
    except Exception as error:
        # Which class a broken connection raises is the HTTP library's affair; that it raises is ours.
        return {"raised": "connection" if "peer closed" in str(error).lower() else repr(error), "texts": texts}


def refused():
    """What the client raises for a request that breaks a rule of the API."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [call]}, {"role": "user", "content": "so?"}]
    try:
        CLIENT.messages.create(**{**asked(), "messages": messages})
    except anthropic.BadRequestError as error:
        return {"raised": type(error).__name__, "type": error.body["error"]["type"], "message": error.body["error"]["message"]}


SCENARIOS = {f.__name__: f for f in (stream, raw_events, whole, tool_loop, count_tokens, models, failure, refused)}
json.dump(SCENARIOS[SCENARIO](), sys.stdout)
