"""Answers each line, a JSON text of `[expression, trim]`, with the YAML that llm-workers makes of the value."""

import json
import sys

from llm_workers.utils import format_as_yaml

for line in sys.stdin:
    source, trim = json.loads(line)
    print(json.dumps(format_as_yaml(eval(source), trim)))
