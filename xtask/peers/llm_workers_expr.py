"""Times llm-workers on the shapes of a file; answers with nanoseconds per run as JSON. Our side runs the same file."""

import json
import sys
import time

from llm_workers.expressions import StringExpression
from llm_workers.starlark import EvaluationContext


def best(function, count):
    """The shortest time of one call, in nanoseconds, over seven rounds."""
    times = []
    for _ in range(7):
        start = time.perf_counter_ns()
        for _ in range(count):
            function()
        times.append((time.perf_counter_ns() - start) / count)
    return min(times)


answer = {}
with open(sys.argv[1]) as file:
    shapes = json.load(file)
for shape in shapes:
    name, text = shape["name"], shape["template"]
    context = EvaluationContext(shape["vars"])
    compiled = StringExpression(text)
    answer[f"value: {name}"] = compiled.evaluate(context)
    answer[f"evaluate: {name}"] = best(lambda: compiled.evaluate(context), 10_000)
    answer[f"load: {name}"] = best(lambda: StringExpression(text).evaluate(context), 500)
print(json.dumps(answer))
