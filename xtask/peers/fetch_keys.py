"""Has Amazon's own library ask a model of Bedrock with keys that it must fetch first.

    python fetch_keys.py cases.json

The file is {"home": "...", "cases": [{"endpoint": "...", "variables": {...}}]}: the home folder for all, the address of the
model, and the environment. The answers are "fine", or the name of an error.
"""

import json
import os
import sys

asked = json.load(open(sys.argv[1]))
path = os.environ.get("PATH", "")
# The library looks for its folders when it is loaded.
os.environ["HOME"] = asked["home"]

import botocore.config
import botocore.session


def ask(case):
    os.environ.clear()
    os.environ.update({"HOME": asked["home"], "PATH": path}, **case["variables"])
    once = botocore.config.Config(retries={"total_max_attempts": 1})
    try:
        session = botocore.session.Session()
        client = session.create_client("bedrock-runtime", "us-east-1", endpoint_url=case["endpoint"], config=once)
        client.converse(modelId="m", messages=[{"role": "user", "content": [{"text": "hi"}]}])
        return "fine"
    except Exception as error:
        return type(error).__name__


json.dump([ask(case) for case in asked["cases"]], sys.stdout)
