"""One call of `add` through MARSYS's tool executor, which validates nothing. Prints nanoseconds per call."""

import asyncio
import json
import logging
import time

logging.disable(logging.CRITICAL)

from marsys.coordination.execution.tool_executor import RealToolExecutor


async def add(x: int, y: int) -> int:
    """Adds two numbers."""
    return x + y


class Agent:
    name = "bench"
    tools = {"add": add}


async def main() -> None:
    executor = RealToolExecutor()
    calls = [{"id": "call_1", "function": {"name": "add", "arguments": '{"x": 1, "y": 2}'}}]
    agent = Agent()

    async def once():
        return await executor.execute_tools(calls, agent, {})

    result = await once()
    assert "3" in str(result), result
    best = float("inf")
    for _ in range(7):
        count = 2000
        start = time.perf_counter()
        for _ in range(count):
            await once()
        best = min(best, (time.perf_counter() - start) / count)
    print(json.dumps({"executor": best * 1e9}))


asyncio.run(main())
