"""A server written with fastmcp that wants a token of its own authorization server, on the port it is told."""

import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import ClientRegistrationOptions

port = int(sys.argv[1])
# Clients are allowed only the scopes that they registered for.
registration = ClientRegistrationOptions(enabled=True, valid_scopes=["greet"])
auth = InMemoryOAuthProvider(base_url=f"http://127.0.0.1:{port}", client_registration_options=registration)
server = FastMCP("guarded", auth=auth)


@server.tool
def hello(name: str) -> str:
    return f"hello {name}"


server.run(transport="http", host="127.0.0.1", port=port, show_banner=False)
