"""Drives our binary with the official Agent SDK and prints what the SDK made of it.

Usage: agent_sdk.py CLI_PATH SCENARIO
Prints one JSON value a line; the Rust test beside this file compares them.
"""
import json
import sys

import anyio
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    UserMessage,
    query,
)

CLI_PATH, SCENARIO = sys.argv[1:]


def options(**more):
    return ClaudeAgentOptions(cli_path=CLI_PATH, model="claude-sonnet-4-5", **more)


def say(value):
    print(json.dumps(value), flush=True)


def blocks(content):
    """The blocks of a message, as the SDK's types name them."""
    if isinstance(content, str):
        return [content]
    fields = {
        "TextBlock": "text",
        "ThinkingBlock": "thinking",
        "ToolUseBlock": "input",
        "ToolResultBlock": "content",
    }
    return [[type(it).__name__, getattr(it, fields[type(it).__name__])] for it in content]


def show(message):
    """Prints a message by the type the SDK gave it."""
    kind = type(message).__name__
    if isinstance(message, SystemMessage):
        say([kind, message.subtype])
    elif isinstance(message, (AssistantMessage, UserMessage)):
        say([kind, blocks(message.content)])
    elif isinstance(message, ResultMessage):
        told = [message.subtype, message.is_error, message.num_turns, message.result, message.terminal_reason]
        say([kind, *told])
    elif isinstance(message, StreamEvent):
        say([kind, message.event["type"]])
    else:
        say([kind])


async def one_shot():
    async for message in query(prompt="What does a.txt say?", options=options()):
        show(message)


async def failure():
    try:
        async for message in query(prompt="hi", options=options(max_turns=1)):
            show(message)
    except ResultError as error:
        say(["raised", type(error).__name__, str(error).splitlines()[0]])


async def several_turns():
    async with ClaudeSDKClient(options()) as client:
        info = await client.get_server_info()
        say(sorted(info))
        for prompt in ["one", "two"]:
            await client.query(prompt)
            async for message in client.receive_response():
                show(message)


async def interrupt():
    async with ClaudeSDKClient(options(include_partial_messages=True)) as client:
        await client.query("talk")
        has_interrupted = False
        async for message in client.receive_response():
            is_text = isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta"
            if is_text and not has_interrupted:
                has_interrupted = True
                await client.interrupt()
            if not isinstance(message, StreamEvent):
                show(message)
        await client.query("go on")
        async for message in client.receive_response():
            if not isinstance(message, StreamEvent):
                show(message)


async def permissions():
    async def can_use_tool(tool, given, context):
        say(["asked", tool, given])
        if "deny" in given["command"]:
            return PermissionResultDeny(message="Not that one.")
        return PermissionResultAllow(updated_input={"command": "touch other"})

    async with ClaudeSDKClient(options(can_use_tool=can_use_tool)) as client:
        await client.query("go")
        async for message in client.receive_response():
            show(message)


async def changes():
    async with ClaudeSDKClient(options()) as client:
        await client.set_permission_mode("acceptEdits")
        await client.set_model("haiku")
        await client.query("write")
        async for message in client.receive_response():
            show(message)


async def resumed():
    first = None
    async for message in query(prompt="one", options=options()):
        if isinstance(message, ResultMessage):
            first = message.session_id
    for more in [{"resume": first}, {"continue_conversation": True}]:
        async for message in query(prompt="more", options=options(**more)):
            if isinstance(message, ResultMessage):
                say([message.session_id == first, message.result])


anyio.run(globals()[SCENARIO])
