"""Times llm-workers on the shapes given as JSON on standard input; answers with nanoseconds per run as JSON.

The same shapes, variables and rounds run on our side, so that the two can be divided.
"""

import json
import sys
import time

from llm_workers.expressions import StringExpression
from llm_workers.starlark import EvaluationContext


def best(function, count, rounds):
    """The shortest time of one call, in nanoseconds, over several rounds."""
    times = []
    for _ in range(rounds):
        start = time.process_time_ns()
        for _ in range(count):
            function()
        times.append((time.process_time_ns() - start) / count)
    return min(times)


def main():
    request = json.load(sys.stdin)
    answer = []
    for shape in request["shapes"]:
        text = shape["template"]
        context = EvaluationContext(shape["vars"])
        compiled = StringExpression(text)
        value = compiled.evaluate(context)
        answer.append({
            "value": value if isinstance(value, (int, float, str, list)) else str(value),
            "evaluate": best(lambda: compiled.evaluate(context), request["evaluations"], request["rounds"]),
            "load": best(lambda: StringExpression(text).evaluate(context), request["loads"], request["rounds"]),
        })
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
