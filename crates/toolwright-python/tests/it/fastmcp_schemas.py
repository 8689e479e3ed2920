"""Prints the schemas that fastmcp makes of the functions of corpus.py, and the values to try."""

import inspect
import json

import corpus
from fastmcp.tools import Tool

functions = {name: getattr(corpus, name) for name in corpus.__all__}
schemas = {name: Tool.from_function(one).parameters for name, one in functions.items() if inspect.isfunction(one)}
print(json.dumps({"schemas": schemas, "values": corpus.VALUES}))
