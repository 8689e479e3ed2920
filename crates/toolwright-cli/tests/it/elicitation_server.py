"""A server written with the official Python SDK whose tools ask the person and the model, and speak while they work."""

from typing import Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel, Field

server = MCPServer("asking")


class Person(BaseModel):
    name: str = Field(description="What to call you", min_length=2)
    age: int = Field(ge=0)
    colour: Literal["red", "blue"] = "red"
    member: bool = False


@server.tool()
async def greet(ctx: Context) -> str:
    answer = await ctx.elicit("Who is there?", Person)
    if answer.action != "accept":
        return f"nobody: {answer.action}"
    who = answer.data
    return f"hello {who.name}, {who.age}, {who.colour}, {who.member}"


@server.tool()
async def think(ctx: Context) -> str:
    said = await ctx.session.create_message(
        messages=[SamplingMessage(role="user", content=TextContent(type="text", text="2 + 2?"))], max_tokens=20
    )
    return f"the model said {said.content.text}"


@server.tool()
async def talk(ctx: Context) -> str:
    await ctx.report_progress(1, 2, "half")
    await ctx.info("on the way")
    await ctx.report_progress(2, 2, "done")
    return "talked"


server.run(transport="stdio")
