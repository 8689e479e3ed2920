"""Drives a server over HTTP with fastmcp's client and prints what it saw as JSON."""

import asyncio, json, sys

from fastmcp import Client


async def main(url, witness):
    seen = {"progress": []}

    async def on_progress(done, total, message):
        seen["progress"].append(done)

    async with Client(url) as client:
        seen["tools"] = len(await client.list_tools()) > 30
        seen["text"] = (await client.call_tool("test_simple_text", {})).content[0].text
        image = await client.call_tool("test_image_content", {})
        seen["image"] = image.content[0].mimeType if hasattr(image.content[0], "mimeType") else image.content[0].mime_type
        seen["structured"] = (await client.call_tool("add", {"x": 1, "y": 2})).structured_content
        failed = await client.call_tool("test_error_handling", {}, raise_on_error=False)
        seen["error"] = failed.is_error
        await client.call_tool("test_tool_with_progress", {}, progress_handler=on_progress)
        try:
            await client.call_tool("wait", {"seconds": 600, "witness": witness}, timeout=2)
            seen["cancel"] = False
        except Exception:
            seen["cancel"] = True
        seen["after"] = (await client.call_tool("wait", {"seconds": 1})).content[0].text
        seen["resource"] = (await client.read_resource("test://static-text"))[0].text
        seen["prompt"] = (await client.get_prompt("test_simple_prompt")).messages[0].content.text
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
