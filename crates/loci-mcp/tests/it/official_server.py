"""A server made with the official Python SDK, with one of everything. The first argument is the transport."""

import sys

import anyio
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("official", version="1.0", instructions="Use add for sums.")


@server.tool(annotations=ToolAnnotations.model_validate({"readOnlyHint": True}))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def echo(text: str = "nothing") -> str:
    """Says what it is told."""
    return text


@server.tool()
def picture() -> Image:
    """Shows a picture."""
    png = bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf500f"
        "0003860180f5c9a8ef0000000049454e44ae426082"
    )
    return Image(data=png, format="png")


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("it broke")


@server.tool()
def large(n: int) -> str:
    """Says a lot."""
    return "line of text\n" * n


@server.tool()
async def slow(ctx: Context, steps: int = 3, pause: float = 0.01) -> str:
    """Takes a while and says how far it is."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
        await anyio.sleep(pause)
    return "done"


@server.tool()
async def where(ctx: Context) -> str:
    """Says where the client works."""
    roots = await ctx.session.list_roots()
    return " ".join(str(root.uri) for root in roots.roots)


class Person(BaseModel):
    name: str
    age: int = 30


@server.tool()
async def ask(ctx: Context) -> str:
    """Asks the user."""
    answer = await ctx.elicit(message="Who are you?", schema=Person)
    return f"{answer.action} {getattr(answer, 'data', None)}"


@server.tool()
async def grow(ctx: Context) -> str:
    """Brings another tool."""

    def grown() -> str:
        """Was not there before."""
        return "new"

    server.add_tool(grown)
    await ctx.session.send_tool_list_changed()
    return "grown"


@server.resource("note://today")
def note() -> str:
    """What is to be done."""
    return "buy milk"


@server.resource("bytes://raw", mime_type="application/octet-stream")
def raw() -> bytes:
    """Bytes."""
    return b"\x00\x01"


@server.prompt()
def review(code: str, tone: str = "kind") -> str:
    """Reviews code."""
    return f"Review this in a {tone} tone: {code}"


options = {"host": "127.0.0.1", "port": int(sys.argv[2])} if len(sys.argv) > 2 else {}
server.run(transport=sys.argv[1], **options)
