"""The peer of `cargo xtask bench mcp`: one tool, served on stdio, or (`http`) on a port of its choice, which it prints."""

import socket
import sys

from fastmcp import FastMCP

server = FastMCP("add")


@server.tool
def add(x: int, y: int) -> int:
    """Adds two numbers."""
    return x + y


if sys.argv[1:] != ["http"]:
    server.run(transport="stdio", show_banner=False)
else:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    print(f"127.0.0.1:{port}", flush=True)
    quiet = {"access_log": False, "log_level": "error"}
    server.run(transport="http", port=port, path="/mcp", show_banner=False, uvicorn_config=quiet)
