"""Turns of a pydantic-ai agent with one tool call each. Prints nanoseconds per turn."""

import asyncio
import json
import sys
import time

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=sys.argv[1], api_key="none"))
agent = Agent(model)


@agent.tool_plain
def add(x: int, y: int) -> int:
    """Adds two numbers."""
    return x + y


async def main() -> None:
    took, turns = 0.0, 0
    for _ in range(10):
        start = time.perf_counter()
        result = await agent.run("Add numbers.", usage_limits=UsageLimits(request_limit=None))
        took += time.perf_counter() - start
        assert result.output == "Done.", result
        turns += sum(part.part_kind == "tool-return" for message in result.all_messages() for part in message.parts)
    print(json.dumps({"turn": took / turns * 1e9, "turns": turns}))


asyncio.run(main())
