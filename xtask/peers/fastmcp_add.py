"""The peer of `cargo xtask bench mcp`: one tool, served on stdio."""

from fastmcp import FastMCP

server = FastMCP("add")


@server.tool
def add(x: int, y: int) -> int:
    """Adds two numbers."""
    return x + y


server.run(transport="stdio", show_banner=False)
