"""One call of `add` through Inspect's execute_tools: it validates the arguments, too. Prints nanoseconds per call."""

import asyncio
import json
import time

from inspect_ai.model import ChatMessageAssistant, ChatMessageUser
from inspect_ai.model._call_tools import execute_tools
from inspect_ai.tool import ToolCall, tool


@tool
def add():
    async def execute(x: int, y: int) -> int:
        """Adds two numbers.

        Args:
            x: First number.
            y: Second number.
        """
        return x + y

    return execute


async def main() -> None:
    tools = [add()]
    asked = ChatMessageAssistant(
        content="", tool_calls=[ToolCall(id="call_1", function="add", arguments={"x": 1, "y": 2})]
    )
    messages = [ChatMessageUser(content="go"), asked]
    result = await execute_tools(messages, tools)
    assert result.messages[0].text == "3", result
    best, rounds = float("inf"), 7
    for _ in range(rounds):
        count = 200
        start = time.perf_counter()
        for _ in range(count):
            await execute_tools(messages, tools)
        best = min(best, (time.perf_counter() - start) / count)
    print(json.dumps({"execute_tools": best * 1e9}))


asyncio.run(main())
