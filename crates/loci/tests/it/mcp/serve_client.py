"""Uses `loci mcp serve` with the official Python client; prints what came of it, a JSON line for each step."""

import json
import os
import sys

import anyio
from mcp import Client, StdioServerParameters

loci, mode = sys.argv[1], sys.argv[2]


def show(step, value):
    print(json.dumps([step, value]), flush=True)


def said(result):
    return ["error" if result.is_error else "ok", result.content[0].text if result.content else ""]


async def main():
    server = StdioServerParameters(command=loci, args=["mcp", "serve"], env=dict(os.environ), cwd=os.getcwd())
    async with Client(server, mode=mode) as client:
        listed = await client.list_tools()
        show("tools", sorted(tool.name for tool in listed.tools))
        show("read", said(await client.call_tool("Read", {"file_path": "a.txt"})))
        show("missing", said(await client.call_tool("Read", {"file_path": "none.txt"})))
        show("write", said(await client.call_tool("Write", {"file_path": "b.txt", "content": "x"}))[0])
        kind, text = said(await client.call_tool("Bash", {"command": "rm -rf secret"}))
        show("denied", [kind, "not granted" in text or text])
        results = {}

        async def call(name, command):
            results[name] = said(await client.call_tool("Bash", {"command": command}))

        # Each waits for the other's file, so neither could end if they ran one after the other.
        async with anyio.create_task_group() as group:
            group.start_soon(call, "one", "sh meet.sh one two")
            group.start_soon(call, "two", "sh meet.sh two one")
        show("together", results)


anyio.run(main)
