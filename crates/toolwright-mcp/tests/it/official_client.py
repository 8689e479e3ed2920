"""Drives a server with the official client and prints what it saw as JSON."""

import asyncio, json, sys

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(mode):
    seen = {}
    progress = []

    async def on_progress(done, total, message):
        progress.append([done, total])

    async with Client(stdio_client(StdioServerParameters(command=sys.argv[1])), mode=mode) as client:
        tools = (await client.list_tools()).tools
        seen["tools"] = [tool.name for tool in tools]
        text = await client.call_tool("test_simple_text", {})
        seen["text"] = text.content[0].text
        image = await client.call_tool("test_image_content", {})
        seen["image"] = [image.content[0].type, image.content[0].mime_type]
        many = await client.call_tool("test_multiple_content_types", {})
        seen["many"] = [block.type for block in many.content]
        total = await client.call_tool("add", {"x": 1, "y": 2})
        seen["structured"] = total.structured_content
        failed = await client.call_tool("test_error_handling", {})
        seen["error"] = failed.is_error
        wrong = await client.call_tool("add", {"x": "one"})
        seen["wrong"] = wrong.is_error
        await client.call_tool("test_tool_with_progress", {}, progress_callback=on_progress)
        seen["progress"] = progress
        calls = [client.call_tool("add", {"x": n, "y": 0}) for n in range(64)]
        seen["many_calls"] = sum(r.structured_content["result"] for r in await asyncio.gather(*calls))
        try:
            await client.call_tool("wait", {"seconds": 600}, read_timeout_seconds=0.3)
            seen["cancel"] = False
        except Exception:
            seen["cancel"] = True
        seen["after"] = (await client.call_tool("wait", {"seconds": 1})).content[0].text
    print(json.dumps(seen))


asyncio.run(main(sys.argv[2]))
