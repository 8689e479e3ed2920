"""Writes the schema of the requests that the vendors' own clients accept, from the types of those clients.

    python request_schema.py ../../testdata/wire/requests.schema.json

Only names and types are taken. A key that a type does not have is refused, which the clients' types do not do by
themselves.
"""

import json
import sys
import typing

import typing_extensions

# The clients say Iterable where they mean a list.
typing.Iterable = typing_extensions.Iterable = typing.List

from anthropic.types import message_create_params as messages
from google.genai import types as gemini
from openai.types.chat import completion_create_params as chat
from openai.types.responses import response_create_params as responses
from pydantic import TypeAdapter
from pydantic.alias_generators import to_snake

COMMENT = (
    "What the vendors' own clients accept as requests; written by xtask/peers/request_schema.py. "
    "The vectors check this schema, and this schema checks our requests."
)
ROOTS = {
    "anthropic_messages": messages.MessageCreateParams,
    "openai_chat": chat.CompletionCreateParams,
    "openai_responses": responses.ResponseCreateParams,
    "gemini_Tool": gemini.Tool,
    "gemini_ToolConfig": gemini.ToolConfig,
    "gemini_Content": gemini.Content,
    "gemini_GenerationConfig": gemini.GenerationConfig,
}
# What a schema says for people, or leaves to the server.
DROPPED = {"title", "description", "default", "discriminator", "examples"}


def plain(schema, prefix):
    """A schema without words, with its own names for what it refers to, closed to unknown keys."""
    if isinstance(schema, list):
        return [plain(each, prefix) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {}
    for key, value in schema.items():
        if key == "properties":
            made[key] = {name: plain(each, prefix) for name, each in value.items()}
        elif key == "$ref":
            made[key] = value.replace("#/$defs/", f"#/$defs/{prefix}.")
        elif key not in DROPPED:
            made[key] = plain(value, prefix)
    if "properties" in made and "additionalProperties" not in made:
        made["additionalProperties"] = False
    if prefix == "gemini":
        made = as_gemini(made)
    return made


def as_gemini(made):
    """These types take both ways of writing a name, any word for an enumeration, and bytes as text."""
    if "properties" in made:
        made["properties"] |= {to_snake(name): each for name, each in made["properties"].items()}
    if "enum" in made:
        return {"type": "string"}
    if made.pop("format", None) in ("base64url", "binary"):
        made["pattern"] = "^[A-Za-z0-9+/_-]*={0,2}$"
    return made


def main():
    definitions = {}
    for name, root in ROOTS.items():
        schema = TypeAdapter(root).json_schema()
        inner = schema.pop("$defs", {})
        prefix = "gemini" if name.startswith("gemini") else name
        definitions[name] = plain(schema, prefix)
        for key, each in inner.items():
            definitions[f"{prefix}.{key}"] = plain(each, prefix)
    # A request to Gemini: its client has no type for the whole.
    parts = {name: {"$ref": f"#/$defs/gemini_{name}"} for name in ("Tool", "ToolConfig", "Content", "GenerationConfig")}
    definitions["gemini"] = {
        "type": "object",
        "properties": {
            "contents": {"type": "array", "items": parts["Content"]},
            "systemInstruction": parts["Content"],
            "tools": {"type": "array", "items": parts["Tool"]},
            "toolConfig": parts["ToolConfig"],
            "generationConfig": parts["GenerationConfig"],
        },
        "required": ["contents"],
        "additionalProperties": False,
    }
    lines = [f"{json.dumps(name)}: {json.dumps(each, sort_keys=True)}" for name, each in sorted(definitions.items())]
    with open(sys.argv[1], "w") as file:
        file.write('{"$comment": %s, "$defs": {\n%s\n}}\n' % (json.dumps(COMMENT), ",\n".join(lines)))


main()
