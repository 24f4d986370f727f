"""Plays an editor that has files, terminals and forms, with the official Python library, and prints what came of it.

Usage: editor.py AGENT [ARGUMENT..]
Prints one JSON value a line; the Rust test beside this file compares them.
"""
import asyncio
import json
import os
import sys

import acp
from acp import schema
from acp.stdio import spawn_agent_process

PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def say(*value):
    print(json.dumps(list(value)), flush=True)


class Editor(acp.Client):
    """Has text that was not saved, terminals that it only pretends to have, and somebody who fills in forms."""

    def __init__(self):
        self.updates = []
        self.unsaved = {os.path.join(os.getcwd(), "b.txt"): "not saved\n"}
        self.read, self.written, self.commands, self.asked, self.completed = [], [], [], [], []

    async def request_permission(self, session_id, tool_call, options, **kwargs):
        option = next(it for it in options if it.kind == "allow_once")
        outcome = schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **kwargs):
        self.updates.append(update)

    async def read_text_file(self, session_id, path, line=None, limit=None, **kwargs):
        self.read.append(os.path.basename(path))
        if path in self.unsaved:
            return schema.ReadTextFileResponse(content=self.unsaved[path])
        with open(path) as file:
            return schema.ReadTextFileResponse(content=file.read())

    async def write_text_file(self, session_id, path, content, **kwargs):
        self.written.append([os.path.basename(path), content])
        self.unsaved[path] = content
        return schema.WriteTextFileResponse()

    async def create_terminal(self, session_id, command, args=None, **kwargs):
        self.commands.append("echo in the editor" in " ".join([command, *(args or [])]))
        return schema.CreateTerminalResponse(terminal_id="t1")

    async def terminal_output(self, session_id, terminal_id, **kwargs):
        status = schema.TerminalExitStatus(exit_code=0)
        return schema.TerminalOutputResponse(output="in the editor\n", truncated=False, exit_status=status)

    async def wait_for_terminal_exit(self, session_id, terminal_id, **kwargs):
        return schema.WaitForTerminalExitResponse(exit_code=0)

    async def release_terminal(self, session_id, terminal_id, **kwargs):
        return schema.ReleaseTerminalResponse()

    async def create_elicitation(self, message, mode, **kwargs):
        url = getattr(mode, "url", None)
        self.asked.append(str(url) if url else sorted(mode.requested_schema.properties))
        content = None if url else {"name": "Ada", "question_1": "Blue"}
        return schema.AcceptElicitationResponse(action="accept", content=content)

    async def complete_elicitation(self, elicitation_id, **kwargs):
        self.completed.append(elicitation_id)

    def take(self):
        told, self.updates = self.updates, []
        return told


def of_kind(updates, kind):
    return [it for it in updates if it.session_update == kind]


async def main():
    cwd = os.getcwd()
    editor = Editor()
    spawned = spawn_agent_process(editor, *sys.argv[1:], env=dict(os.environ), cwd=cwd, use_unstable_protocol=True)
    async with spawned as (agent, _):
        able = schema.ClientCapabilities(
            fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True),
            terminal=True,
            elicitation=schema.ElicitationCapabilities(
                form=schema.ElicitationFormCapabilities(), url=schema.ElicitationUrlCapabilities()
            ),
        )
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=able)
        await agent.authenticate(method_id="api-key")
        server = schema.McpServerStdio(name="s", command="python3", args=[os.environ["MCP_SERVER"]], env=[])
        opened = await agent.new_session(cwd=cwd, mcp_servers=[server], additional_directories=["/tmp"])
        session = opened.session_id

        async def ask(*blocks):
            blocks = [acp.text_block(it) if isinstance(it, str) else it for it in blocks]
            answer = await agent.prompt(session_id=session, prompt=list(blocks))
            return answer.stop_reason, editor.take()

        embedded = schema.TextResourceContents(
            uri=f"file://{cwd}/embedded.md", text="embedded words", mime_type="text/markdown"
        )
        reason, told = await ask(
            "look at these",
            acp.image_block(PICTURE, "image/png"),
            acp.resource_block(embedded),
            acp.resource_link_block("a.txt", f"file://{cwd}/a.txt"),
        )
        say("content", reason, "".join(it.content.text for it in of_kind(told, "agent_message_chunk")))
        reason, told = await ask("edit it")
        diffs = [part for it in told for part in getattr(it, "content", None) or [] if getattr(part, "type", "") == "diff"]
        say("diff", reason, diffs[0].old_text, diffs[0].new_text)
        say("files", editor.read, editor.written)
        reason, told = await ask("run it")
        say("terminal", reason, editor.commands)
        reason, told = await ask("plan it")
        say("plan", [[it.content, it.status] for it in of_kind(told, "plan")[-1].entries])
        for name, text in [("forms", "ask me"), ("server form", "let the server ask"), ("page", "visit a page")]:
            reason, _ = await ask(text)
            say(name, reason, editor.asked)
            editor.asked = []
        say("completed", editor.completed)

        model = next(it for it in opened.config_options if it.id == "model")
        other = next(it.value for it in model.options if "haiku" in it.value)
        chosen = await agent.set_config_option(config_id="model", session_id=session, value=other)
        say("model", next(it for it in chosen.config_options if it.id == "model").current_value == other)
        reason, told = await ask("say hello")
        usage = of_kind(told, "usage_update")[-1]
        say("usage", reason, usage.used > 0, usage.cost.currency)

        await agent.close_session(session_id=session)
        await agent.resume_session(session_id=session, cwd=cwd, mcp_servers=[])
        say("resumed", len(of_kind(editor.take(), "user_message_chunk")))
        for name, call in [
            ("fork", lambda: agent.fork_session(session_id=session, cwd=cwd, mcp_servers=[])),
            ("extension", lambda: agent.ext_method("of/nobody", {})),
        ]:
            try:
                await call()
                say(name, "done")
            except acp.RequestError as error:
                say(name, error.code)
        await agent.ext_notification("of/nobody", {})
        say("listed", len((await agent.list_sessions(cwd=cwd)).sessions))


asyncio.run(asyncio.wait_for(main(), 100))
