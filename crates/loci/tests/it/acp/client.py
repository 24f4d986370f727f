"""Drives our agent with the official Python library and prints what the library made of it.

Usage: client.py AGENT [ARGUMENT..]
Prints one JSON value a line; the Rust test beside this file compares them.
"""
import asyncio
import json
import os
import sys

import acp
from acp import schema
from acp.stdio import spawn_agent_process


def say(*value):
    print(json.dumps(list(value)), flush=True)


class Editor(acp.Client):
    """Keeps what it is told, and allows what has no `denied` in it."""

    def __init__(self):
        self.updates = {}

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        wanted = "reject_once" if "denied" in tool_call.title else "allow_once"
        option = next(it for it in options if it.kind == wanted)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **kwargs):
        self.updates.setdefault(session_id, []).append(update)

    def take(self, session_id):
        return self.updates.pop(session_id, [])


def text_of(updates, kind):
    return "".join(it.content.text for it in updates if it.session_update == kind)


def calls_of(updates):
    calls = {}
    for it in updates:
        if it.session_update == "tool_call":
            calls[it.tool_call_id] = [it.kind, it.title, it.status]
        elif it.session_update == "tool_call_update" and it.status:
            calls[it.tool_call_id][2] = it.status
    return list(calls.values())


async def main():
    cwd = os.getcwd()
    editor = Editor()
    async with spawn_agent_process(editor, *sys.argv[1:], env=dict(os.environ), cwd=cwd) as (agent, _):
        hello = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        say("version", hello.protocol_version, hello.agent_info.name)
        new = await agent.new_session(cwd=cwd, mcp_servers=[])
        say("new", new.modes.current_mode_id, [it.id for it in new.config_options][:2])
        session = new.session_id

        async def prompt(session, text):
            answer = await agent.prompt(session_id=session, prompt=[acp.text_block(text)])
            return answer.stop_reason, editor.take(session)

        reason, told = await prompt(session, "read it")
        text, thought = text_of(told, "agent_message_chunk"), text_of(told, "agent_thought_chunk")
        say("prompt", reason, text, thought, calls_of(told))
        for name, text in [("allow", "make allowed"), ("deny", "make denied")]:
            reason, told = await prompt(session, text)
            say(name, reason, calls_of(told))

        waiting = asyncio.create_task(prompt(session, "wait for ever"))
        while not os.path.exists("started"):
            await asyncio.sleep(0.01)
        await agent.cancel(session_id=session)
        say("cancel", (await waiting)[0])

        other = (await agent.new_session(cwd=cwd, mcp_servers=[])).session_id
        first, second = await asyncio.gather(prompt(session, "one of two"), prompt(other, "two of two"))
        texts = [text_of(told, "agent_message_chunk") for _, told in (first, second)]
        say("two", first[0], texts[0], second[0], texts[1])

        await agent.set_session_mode(session_id=other, mode_id="plan")
        modes = [it for it in editor.take(other) if it.session_update == "current_mode_update"]
        say("mode", modes[-1].current_mode_id)
        listed = await agent.list_sessions(cwd=cwd)
        say("list", len(listed.sessions))

        editor.take(session)
        await agent.load_session(cwd=cwd, session_id=session, mcp_servers=[])
        told = editor.take(session)
        asked = [it.content.text for it in told if it.session_update == "user_message_chunk"]
        answers = [it.content.text for it in told if it.session_update == "agent_message_chunk"]
        say("load", asked[0], answers[0])
        reason, told = await prompt(session, "say hello")
        say("after load", reason, text_of(told, "agent_message_chunk"))


asyncio.run(asyncio.wait_for(main(), 100))
