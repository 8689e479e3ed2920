"""Flows in llm-workers, run as its own `call` statement runs a tool. Prints nanoseconds per call for each tool.

Arguments: the YAML file, then `tool=path` pairs, where the path is a JSON file with the input.
"""

import json
import logging
import sys
import tempfile
import time
import types

from langchain_core.tools import tool
from llm_workers.config import UserConfig
from llm_workers.token_tracking import CompositeTokenUsageTracker
from llm_workers.user_context import StandardUserContext
from llm_workers.worker_utils import call_tool
from llm_workers.workers_context import StandardWorkersContext

logging.disable(logging.CRITICAL)


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


module = types.ModuleType("bench_tools")
module.add = add
sys.modules["bench_tools"] = module


def drain(generator):
    try:
        while True:
            next(generator)
    except StopIteration as stop:
        return stop.value


def measure(context, name, arguments):
    target = context.get_tool(name)

    def once():
        return drain(call_tool(target, arguments, context.evaluation_context, CompositeTokenUsageTracker(), None, {}))

    once()
    count, best = 1, float("inf")
    while True:
        start = time.perf_counter()
        for _ in range(count):
            once()
        took = time.perf_counter() - start
        if took > 0.05:
            break
        count *= 2
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(count):
            once()
        best = min(best, (time.perf_counter() - start) / count)
    return best * 1e9


def main():
    path, *calls = sys.argv[1:]
    text = open(path).read().replace("import_tool: add", "import_tool: bench_tools.add")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        config = StandardWorkersContext.load_script(file.name)
    context = StandardWorkersContext(config, StandardUserContext(UserConfig(models=[]), {}))
    pairs = [call.split("=", 1) for call in calls]
    print(json.dumps(context.run(lambda: {name: measure(context, name, json.load(open(given))) for name, given in pairs})))


main()
