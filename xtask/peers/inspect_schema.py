"""A tool's schema from its signature, and arguments checked against it, as Inspect does both. Prints nanoseconds."""

import json
import time
from typing import Literal, Optional

from inspect_ai.tool._tool_info import parse_tool_info
from inspect_ai.tool._tool_params import ToolParams
from inspect_ai.model._call_tools import tool_params, validate_tool_input


def make_search():
    async def search(
        query: str,
        limit: int,
        tags: list[str],
        threshold: float,
        exact: bool,
        order: Literal["newest", "oldest"],
        filters: dict[str, str] = {},
        database: Optional[str] = None,
    ) -> str:
        """Searches.

        Args:
            query: What to look for.
            limit: How many hits at the most.
            tags: Tags, any of which will do.
            threshold: How sure to be.
            exact: Whether case matters.
            order: How to sort.
            filters: What the hits must have.
            database: Where to look.
        """
        return query

    return search


def best_of(count, work):
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(count):
            work()
        best = min(best, (time.perf_counter() - start) / count)
    return best * 1e9


search = make_search()
arguments = {
    "query": "red shoes", "limit": 10, "filters": {"colour": "red"}, "tags": ["a", "b"], "threshold": 0.5,
    "exact": False, "order": "newest",
}
info = parse_tool_info(search)
assert validate_tool_input(arguments, info.parameters) is None


def check():
    assert validate_tool_input(arguments, info.parameters) is None
    tool_params(arguments, search)


# The result is cached per function, so each schema is made from a new one.
fresh = iter([make_search() for _ in range(7 * 200)])
print(json.dumps({
    "parse_tool_info": best_of(200, lambda: parse_tool_info(next(fresh))),
    "validate and coerce": best_of(200, check),
}))
