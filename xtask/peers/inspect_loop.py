"""Turns of Inspect's generate_loop with one tool call each. Prints nanoseconds per turn."""

import asyncio
import json
import sys
import time

from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.tool import tool


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
    model = get_model("openai-api/bench/m", base_url=sys.argv[1], api_key="none", memoize=False)
    took, turns = 0.0, 0
    for _ in range(10):
        start = time.perf_counter()
        messages, output = await model.generate_loop([ChatMessageUser(content="Add numbers.")], tools=[add()])
        took += time.perf_counter() - start
        assert output.completion == "Done.", output
        turns += sum(message.role == "tool" for message in messages)
    print(json.dumps({"turn": took / turns * 1e9, "turns": turns}))


asyncio.run(main())
