"""Reads the requests in testdata/wire with the types of the vendors' own clients: each must be valid, and hold no key
that a client does not know."""

import json
import pathlib
import sys
import typing

import typing_extensions

# The clients say Iterable where they mean a list; the validator would then look at nothing.
typing.Iterable = typing_extensions.Iterable = typing.List

from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as Messages
from google.genai import types as gemini
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as Chat
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as Responses
from pydantic import TypeAdapter

# Known to the servers, not to the types: reasoning that goes back, and what the conversation's `extra` adds.
BESIDE = {
    "anthropic": {"/user", "/temperature"},
    "openai_chat": {"/messages/2/reasoning_content"},
    "openai_responses": set(),
}


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


def main():
    folder = pathlib.Path("testdata/wire")
    failed = False
    for name, kind in (("anthropic", Messages), ("openai_chat", Chat), ("openai_responses", Responses)):
        request = json.loads((folder / name / "request.json").read_text())
        known = TypeAdapter(kind).validate_python(request)
        extra = set(unknown(request, known)) - BESIDE[name]
        print(f"{name}: valid" + (f", but for {sorted(extra)}" if extra else ""))
        failed |= bool(extra)
    # These types refuse keys they do not know.
    request = json.loads((folder / "gemini" / "request.json").read_text())
    for content in [*request["contents"], request["systemInstruction"]]:
        gemini.Content.model_validate(content)
    for tool in request["tools"]:
        gemini.Tool.model_validate(tool)
    gemini.ToolConfig.model_validate(request["toolConfig"])
    gemini.GenerationConfig.model_validate(request["generationConfig"])
    print("gemini: valid")
    sys.exit(failed)


main()
