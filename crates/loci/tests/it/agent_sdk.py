"""Drives our binary with the official Agent SDK and prints what the SDK made of it.

Usage: agent_sdk.py CLI_PATH SCENARIO
Prints one JSON value a line; the Rust test beside this file compares them.
"""
import json
import logging
import os
import sys
import warnings

import anyio
import claude_agent_sdk
from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ConversationResetMessage,
    HookEventMessage,
    HookMatcher,
    InMemorySessionStore,
    MirrorErrorMessage,
    PermissionResultAllow,
    PermissionResultDeny,
    RateLimitEvent,
    ResultError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TaskNotificationMessage,
    TaskStartedMessage,
    TaskUpdatedMessage,
    ToolAnnotations,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
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


async def hooks():
    async def before(given, tool_use_id, context):
        say(["before", given["tool_name"], tool_use_id is not None])
        decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "No."}
        return {"hookSpecificOutput": decision}

    async def prompted(given, tool_use_id, context):
        say(["prompted", given["prompt"]])
        added = {"hookEventName": "UserPromptSubmit", "additionalContext": "It is late."}
        return {"hookSpecificOutput": added}

    async def failing(given, tool_use_id, context):
        raise RuntimeError("the guard is down")

    matchers = {
        "PreToolUse": [HookMatcher(matcher="Bash", hooks=[before], timeout=20)],
        "UserPromptSubmit": [HookMatcher(hooks=[prompted])],
    }
    kinds = set()
    more = {"hooks": matchers, "allowed_tools": ["Bash", "Write"], "include_hook_events": True}
    async for message in query(prompt="go", options=options(**more)):
        if isinstance(message, HookEventMessage):
            kinds.add(message.subtype)
        if isinstance(message, ResultMessage):
            show(message)
    say(sorted(kinds))
    closed = {"PreToolUse": [HookMatcher(matcher="Write", hooks=[failing], on_failure="block")]}
    async for message in query(prompt="go", options=options(hooks=closed, allowed_tools=["Write"])):
        if isinstance(message, UserMessage):
            show(message)


async def mcp_in_process():
    @tool("add", "Adds.", {"a": int, "b": int}, annotations=ToolAnnotations(readOnlyHint=True))
    async def add(given):
        say(["called", given])
        return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}

    calc = create_sdk_mcp_server("calc", tools=[add])
    more = {"mcp_servers": {"calc": calc}, "allowed_tools": ["mcp__calc__add"], "strict_mcp_config": True}
    async with ClaudeSDKClient(options(**more)) as client:
        await client.query("add")
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                show(message)
        status = await client.get_mcp_status()
        say([[it["name"], it["status"]] for it in status["mcpServers"]])
        say(status["mcpServers"][0]["tools"])
        await client.toggle_mcp_server("calc", False)
        status = await client.get_mcp_status()
        say([[it["name"], it["status"]] for it in status["mcpServers"]])
        await client.toggle_mcp_server("calc", True)
        await client.reconnect_mcp_server("calc")


async def deferred():
    """A hook puts a call off; the run that takes it up lets it run."""
    decision = "defer"

    async def decide(given, tool_use_id, context):
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision}}

    matchers = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[decide])]}
    async for message in query(prompt="go", options=options(hooks=matchers)):
        if isinstance(message, ResultMessage):
            session, call = message.session_id, message.deferred_tool_use
            say([message.subtype, message.is_error, call.name, call.input, os.path.exists("made")])
    decision = "allow"
    async for message in query(prompt="go on", options=options(hooks=matchers, resume=session)):
        if isinstance(message, ResultMessage):
            say([message.result, message.deferred_tool_use, os.path.exists("made")])


async def structured():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    more = {"output_format": {"type": "json_schema", "schema": schema}}
    async for message in query(prompt="How many?", options=options(**more)):
        if isinstance(message, ResultMessage):
            say([message.subtype, message.structured_output, message.result])
    try:
        async for message in query(prompt="How many?", options=options(**more)):
            if isinstance(message, ResultMessage):
                say([message.subtype, message.is_error])
    except ResultError as error:
        say(["raised", str(error).splitlines()[0]])


async def agents():
    looker = AgentDefinition(description="Looks.", prompt="You look.", tools=["Read"], model="haiku")
    more = {"agents": {"looker": looker}, "forward_subagent_text": True}
    async for message in query(prompt="Send it.", options=options(**more)):
        if isinstance(message, (TaskStartedMessage, TaskNotificationMessage)):
            say([type(message).__name__])
        elif isinstance(message, AssistantMessage) and message.parent_tool_use_id:
            show(message)
        elif isinstance(message, ResultMessage):
            show(message)


async def request_options():
    more = {
        "system_prompt": {"type": "preset", "preset": "claude_code", "append": "Rhyme.", "exclude_dynamic_sections": True},
        "tools": ["Read", "Bash"],
        "disallowed_tools": ["Bash"],
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "task_budget": {"total": 50000},
        "max_turns": 3,
        "max_budget_usd": 5.0,
        "fallback_model": "haiku",
        "add_dirs": ["/tmp"],
        "settings": json.dumps({"permissions": {"deny": ["WebFetch"]}}),
        "setting_sources": [],
        "skills": ["init"],
        "betas": ["context-1m-2025-08-07"],
        "client_app": "tests/1",
        "user": None,
        "extra_args": {"name": "Mine", "debug-to-stderr": None},
    }
    lines = []
    async for message in query(prompt="hi", options=options(stderr=lines.append, **more)):
        if isinstance(message, SystemMessage):
            say([message.data["tools"], message.data["additional_directories"], message.data["betas"]])
        if isinstance(message, ResultMessage):
            show(message)
    say(["debug lines on stderr", len(lines) > 3])


async def verbatim():
    complaints = []
    handler = logging.Handler()
    handler.emit = lambda record: complaints.append(record.getMessage())
    logging.getLogger("claude_agent_sdk").addHandler(handler)
    async for message in query(prompt="/usage of @a.txt", options=options(verbatim_prompts=True)):
        if isinstance(message, ResultMessage):
            show(message)


    say(["warnings of the SDK", complaints])


async def prompt_forms():
    with open("prompt.md", "w") as file:
        file.write("From a file.")
    custom = {"type": "custom", "prompt": "Custom.", "snapshot": False}
    forms = ["Brief.", custom, {"type": "file", "path": "prompt.md"}, {"type": "preset", "preset": "claude_code"}]
    for form in forms:
        async for message in query(prompt="hi", options=options(system_prompt=form)):
            if isinstance(message, ResultMessage):
                show(message)


async def thinking_forms():
    forms = [
        {"thinking": {"type": "adaptive", "display": "omitted"}, "effort": "low"},
        {"thinking": {"type": "disabled"}},
        {"max_thinking_tokens": 2048},
    ]
    for form in forms:
        chosen = ClaudeAgentOptions(cli_path=CLI_PATH, model="claude-opus-4-8", **form)
        async for message in query(prompt="hi", options=chosen):
            if isinstance(message, ResultMessage):
                show(message)


async def streamed_prompts():
    def prompt(text, uuid):
        content = [{"type": "text", "text": text}]
        return {"type": "user", "message": {"role": "user", "content": content}, "uuid": uuid, "session_id": ""}

    async def prompts():
        yield prompt("one", "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a01")
        yield prompt("two", "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a02")

    async for message in query(prompt=prompts(), options=options()):
        if isinstance(message, ResultMessage):
            show(message)
    client = ClaudeSDKClient(options(cwd=os.getcwd(), env={"SOME": "thing"}, max_buffer_size=4 * 1024 * 1024))
    await client.connect("three")
    async for message in client.receive_messages():
        if isinstance(message, ResultMessage):
            show(message)
            break
    await client.disconnect()


async def environment():
    """Settings in a file, a plugin, sources, skills, and servers in a file."""
    os.makedirs("plug/.claude-plugin")
    os.makedirs("plug/skills/greet")
    with open("plug/.claude-plugin/plugin.json", "w") as file:
        json.dump({"name": "plug", "version": "1.0.0"}, file)
    with open("plug/skills/greet/SKILL.md", "w") as file:
        file.write("---\nname: greet\ndescription: Greets.\n---\nGreet.")
    with open("more.json", "w") as file:
        json.dump({"permissions": {"deny": ["Bash(touch *)"]}}, file)
    with open("servers.json", "w") as file:
        server = {"command": "python3", "args": [os.environ["MCP_SERVER"], "--verdict", os.environ["VERDICT"]]}
        json.dump({"mcpServers": {"s": server}}, file)
    more = {
        "settings": "more.json",
        "sandbox": {"enabled": False},
        "plugins": [{"type": "local", "path": "plug"}],
        "setting_sources": ["project"],
        "skills": "all",
        "mcp_servers": "servers.json",
        "permission_prompt_tool_name": "mcp__s__verdict",
    }
    async for message in query(prompt="go", options=options(**more)):
        if isinstance(message, SystemMessage) and message.subtype == "init":
            data = message.data
            say([[it["name"] for it in data["plugins"]], "plug:greet" in data["skills"], data["mcp_servers"]])
        if isinstance(message, UserMessage):
            show(message)
        if isinstance(message, ResultMessage):
            say([message.result, [it["tool_name"] for it in message.permission_denials]])


async def tasks():
    async with ClaudeSDKClient(options(allowed_tools=["Bash"])) as client:
        await client.query("start")
        task = None
        async for message in client.receive_response():
            if isinstance(message, TaskStartedMessage):
                task = message.task_id
                say([message.task_type, message.description])
        await client.stop_task(task)
        async for message in client.receive_messages():
            if isinstance(message, TaskUpdatedMessage):
                say([message.task_id == task, message.status])
            if isinstance(message, TaskNotificationMessage):
                say([message.task_id == task, message.status])
                break


async def limits():
    async for message in query(prompt="hi", options=options()):
        if isinstance(message, RateLimitEvent):
            info = message.rate_limit_info
            say([info.status, info.rate_limit_type, info.utilization, info.resets_at])
        if isinstance(message, ResultMessage):
            usage = message.model_usage["claude-sonnet-4-5"]
            say(sorted(usage))
            say([message.total_cost_usd == usage["costUSD"], message.usage["input_tokens"], message.duration_api_ms >= 0])


async def stored_agents():
    store = InMemorySessionStore()
    looker = AgentDefinition(description="Looks.", prompt="You look.", tools=["Read"])
    session = None
    async for message in query(prompt="Send it.", options=options(agents={"looker": looker})):
        if isinstance(message, ResultMessage):
            session = message.session_id
    agent = claude_agent_sdk.list_subagents(session)[0]
    say([it.type for it in claude_agent_sdk.get_subagent_messages(session, agent)])
    await claude_agent_sdk.import_session_to_store(session, store)
    say((await claude_agent_sdk.list_subagents_from_store(store, session)) == [agent])
    stored = await claude_agent_sdk.get_subagent_messages_from_store(store, session, agent)
    say([it.type for it in stored])
    await claude_agent_sdk.tag_session_via_store(store, session, "kept")
    info = await claude_agent_sdk.get_session_info_from_store(store, session)
    say([info.tag, info.summary])
    await claude_agent_sdk.delete_session_via_store(store, session)
    say(len(await claude_agent_sdk.list_sessions_from_store(store)))


async def checkpoints():
    more = {"enable_file_checkpointing": True, "permission_mode": "acceptEdits"}
    more["extra_args"] = {"replay-user-messages": None}
    async with ClaudeSDKClient(options(**more)) as client:
        await client.query("write")
        uuid = None
        async for message in client.receive_response():
            if isinstance(message, UserMessage) and uuid is None:
                uuid = message.uuid
        say(os.path.exists("new.txt"))
        await client.rewind_files(uuid)
        say(os.path.exists("new.txt"))
        usage = await client.get_context_usage()
        say([usage["model"], usage["totalTokens"] > 0, usage["percentage"] >= 0, len(usage["categories"]) > 2])
        await client.stop_task("none")


async def stores():
    store = InMemorySessionStore()
    session = None
    async for message in query(prompt="one", options=options(session_store=store)):
        if isinstance(message, ResultMessage):
            session = message.session_id
    stored = await claude_agent_sdk.get_session_messages_from_store(store, session)
    say([it.type for it in stored])
    claude_agent_sdk.delete_session(session)
    more = {"session_store": store, "resume": session, "session_store_flush": "eager"}
    async for message in query(prompt="two", options=options(**more)):
        if isinstance(message, ResultMessage):
            say([message.session_id == session, message.result])
    await claude_agent_sdk.rename_session_via_store(store, session, "Kept")
    info = await claude_agent_sdk.get_session_info_from_store(store, session)
    say([info.custom_title, len(await claude_agent_sdk.list_sessions_from_store(store))])
    fork = await claude_agent_sdk.fork_session_via_store(store, session)
    say(len(await claude_agent_sdk.get_session_messages_from_store(store, fork.session_id)))


async def branches():
    first = "0b0dd0a4-9b0e-4f3e-8a53-6bd0ce0a1a02"
    async for _ in query(prompt="one", options=options(session_id=first)):
        pass
    async for _ in query(prompt="two", options=options(resume=first)):
        pass
    messages = claude_agent_sdk.get_session_messages(first)
    at = [it.uuid for it in messages if it.type == "assistant"][0]
    second = [it.uuid for it in messages if it.type == "user"][1]
    more = {"resume": first, "fork_session": True, "resume_session_at": at, "resume_drops_turn": second}
    async for message in query(prompt="three", options=options(**more)):
        if isinstance(message, ResultMessage):
            say([message.session_id == first, message.result])
    more["resume_drops_turn"] = at
    try:
        async for _ in query(prompt="four", options=options(**more)):
            pass
    except Exception as error:
        say(["raised", "Resume rejected by --resume-drops-turn:" in str(error)])


class ForgetfulStore(InMemorySessionStore):
    """Takes nothing in."""

    async def append(self, key, entries):
        raise RuntimeError("the store is full")


async def remaining():
    """What no other scenario has: a reset, rules that an answer adds, a store that fails, and keys."""
    async def can_use_tool(tool, given, context):
        say(["asked", given["command"], len(context.suggestions) > 0])
        return PermissionResultAllow(updated_permissions=context.suggestions[:1])

    async with ClaudeSDKClient(options(can_use_tool=can_use_tool, load_timeout_ms=5000)) as client:
        await client.query("make two")
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                show(message)
        await client.query("/clear")
        async for message in client.receive_response():
            if isinstance(message, ConversationResetMessage):
                say(["reset", len(message.new_conversation_id) > 30])
    failed = 0
    async for message in query(prompt="one", options=options(session_store=ForgetfulStore())):
        failed += isinstance(message, MirrorErrorMessage)
        if isinstance(message, ResultMessage):
            session = message.session_id
            show(message)
    say(["mirror errors", failed > 0])
    key = claude_agent_sdk.project_key_for_directory(os.getcwd())
    say(os.path.exists(os.path.join(os.environ["HOME"], ".claude", "projects", key, f"{session}.jsonl")))
    with open(os.path.join(os.environ["HOME"], ".claude", "projects", key, f"{session}.jsonl")) as file:
        entries = [json.loads(line) for line in file]
    summary = claude_agent_sdk.fold_session_summary(None, {"project_key": key, "session_id": session}, entries)
    say(summary["data"].get("first_prompt") or sorted(summary["data"]))


warnings.simplefilter("ignore")
anyio.run(globals()[SCENARIO])
