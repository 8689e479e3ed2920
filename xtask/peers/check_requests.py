"""Reads requests with the types of the vendors' own clients: each must be valid, and hold no key that a client does not
know.

    python check_requests.py requests.json

The file is a list of {"format", "streamed", "body"}. Prints one line for each request that is not valid.
"""

import json
import sys
import typing

import typing_extensions

# The clients say Iterable where they mean a list; the validator would then look at nothing.
typing.Iterable = typing_extensions.Iterable = typing.List

import botocore.session
from anthropic.types import message_create_params as messages
from botocore.validate import ParamValidator
from google.genai import types as gemini
from openai.types.chat import completion_create_params as chat
from openai.types.responses import response_create_params as responses
from pydantic import TypeAdapter

# Known to the servers, not to the types: sampling (refused by later versions of the API), and what goes back.
BESIDE = {
    "anthropic": {"temperature"},
    "openai_chat": {"reasoning_content", "reasoning", "reasoning_details", "extra_content"},
    "openai_responses": set(),
}


def adapters(module, name):
    return {
        False: TypeAdapter(getattr(module, name + "NonStreaming")),
        True: TypeAdapter(getattr(module, name + "Streaming")),
    }


ADAPTERS = {
    "anthropic": adapters(messages, "MessageCreateParams"),
    "openai_chat": adapters(chat, "CompletionCreateParams"),
    "openai_responses": adapters(responses, "ResponseCreateParams"),
}
CONVERSE = botocore.session.get_session().get_service_model("bedrock-runtime").shape_for("ConverseRequest")


def unknown(given, known, path=""):
    """The paths in `given` that `known` lacks."""
    if isinstance(given, dict) and isinstance(known, dict):
        for key, value in given.items():
            here = f"{path}/{key}"
            if key in known:
                yield from unknown(value, known[key], here)
            else:
                yield here
    elif isinstance(given, list) and isinstance(known, list):
        for index, (one, other) in enumerate(zip(given, known)):
            yield from unknown(one, other, f"{path}/{index}")


def problems(format, streamed, body):
    if format == "bedrock_invoke":
        # What the address says in this API is in the body of the other.
        body = {**body, "model": "m", **({"stream": True} if streamed else {})}
        if not body.pop("anthropic_version", None):
            return ["no anthropic_version"]
        format = "anthropic"
    if format in ADAPTERS:
        known = ADAPTERS[format][streamed].validate_python(body)
        return [path for path in unknown(body, known) if path.rsplit("/", 1)[-1] not in BESIDE[format]]
    if format == "bedrock_converse":
        report = ParamValidator().validate({**body, "modelId": "m"}, CONVERSE)
        return [report.generate_report()] if report.has_errors() else []
    # These types refuse keys they do not know.
    keys = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"}
    for content in [*body["contents"], *([body["systemInstruction"]] if "systemInstruction" in body else [])]:
        gemini.Content.model_validate(content)
    for tool in body.get("tools", []):
        gemini.Tool.model_validate(tool)
    gemini.ToolConfig.model_validate(body.get("toolConfig", {}))
    gemini.GenerationConfig.model_validate(body.get("generationConfig", {}))
    return sorted(set(body) - keys)


def main():
    failed = 0
    requests = json.load(open(sys.argv[1]))
    for request in requests:
        try:
            found = problems(**request)
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        if found:
            failed += 1
            print(f"{request['format']}: {found[:3]}\n{json.dumps(request['body'])[:2000]}")
    print(f"{len(requests)} requests, {failed} not valid", file=sys.stderr)
    sys.exit(bool(failed))


main()
