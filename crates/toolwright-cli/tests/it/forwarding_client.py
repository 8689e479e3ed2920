"""Drives a server with the official Python client, answers what it asks, and prints what came of it as JSON."""

import asyncio, json, sys

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CreateMessageResult, ElicitResult, TextContent


async def main(mode, program, *args):
    seen = {"asked": [], "log": [], "progress": []}
    replies = [
        ElicitResult(action="accept", content={"name": "Ada", "age": 36, "colour": "blue", "member": True}),
        ElicitResult(action="decline"),
    ]

    async def elicit(context, params):
        seen["asked"].append([params.message, sorted(params.requested_schema["properties"])])
        return replies.pop(0)

    async def sample(context, params):
        seen["asked"].append(params.messages[0].content.text)
        text = TextContent(type="text", text="four")
        return CreateMessageResult(role="assistant", content=text, model="parrot", stop_reason="endTurn")

    async def log(params):
        seen["log"].append([params.logger, params.data])

    async def progress(done, total, message):
        seen["progress"].append([done, total, message])

    async def told(name, client, **more):
        try:
            result = await client.call_tool(name, {}, **more)
        except Exception as error:
            return f"failed: {error}"
        return result.content[0].text

    transport = lambda: stdio_client(StdioServerParameters(command=program, args=list(args)))
    asked = {"elicitation_callback": elicit, "sampling_callback": sample, "logging_callback": log}
    if mode != "legacy":
        asked["log_level"] = "info"
    async with Client(transport(), mode=mode, **asked) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        greet, think, talk = (next(n for n in names if n.endswith(end)) for end in ("greet", "think", "talk"))
        seen["greeted"] = [await told(greet, client), await told(greet, client)]
        seen["thought"] = await told(think, client)
        seen["talked"] = await told(talk, client, progress_callback=progress)
    async with Client(transport(), mode=mode) as client:
        seen["nobody"] = [await told(greet, client), await told(think, client)]
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
