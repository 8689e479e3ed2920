"""A server written with the official Python SDK, for our client."""

import asyncio

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Image

server = MCPServer("peer")


@server.tool()
def add(x: int, y: int) -> int:
    """Adds two numbers."""
    return x + y


@server.tool()
def picture() -> Image:
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


@server.tool()
def fail() -> str:
    raise ValueError("no such city")


@server.tool()
async def count(ctx: Context) -> str:
    for done in range(1, 4):
        await ctx.report_progress(done, 3)
    return "counted"


@server.tool()
async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


server.run(transport="stdio")
