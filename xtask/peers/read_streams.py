"""Has the vendors' own clients read streams, and prints what they make of them.

    python read_streams.py streams.json

The file is a list of {"id", "format", "base64"}. A server on loopback plays each stream to the client of its format.
"""

import base64
import functools
import http.server
import json
import sys
import threading

PLAYED = {}


class Player(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        # The id is a header, or the model in the path.
        key = self.headers.get("x-stream")
        key = key or next(part for part in self.path.replace(":", "/").split("/") if part in PLAYED)
        kind, body = PLAYED[key]
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def stop_of(reason):
    """Whether a reply ended as it should; a server that gives no reason has none to complain."""
    usual = ("end_turn", "tool_use", "stop", "tool_calls", "completed", "STOP", None)
    return "done" if reason in usual else "other"


def counts_of(usage, *fields):
    """Counts that a server left out are none."""
    return [getattr(usage, field, None) or 0 for field in fields]


@functools.cache
def anthropic_client(base):
    from anthropic import Anthropic

    return Anthropic(api_key="none", base_url=base, max_retries=0)


def anthropic(base, name):
    message, headers = [{"role": "user", "content": "x"}], {"x-stream": name}
    messages = anthropic_client(base).messages
    with messages.stream(model="m", max_tokens=9, messages=message, extra_headers=headers) as stream:
        reply = stream.get_final_message()
    texts = {"text": lambda block: block.text, "thinking": lambda block: block.thinking, "tool_use": lambda block: block.id}
    kinds = {"text": "text", "thinking": "thought", "tool_use": "call"}
    return {
        "text": "".join(block.text for block in reply.content if block.type == "text"),
        "reasoning": "".join(block.thinking for block in reply.content if block.type == "thinking"),
        "calls": [[b.id, b.name, b.input] for b in reply.content if b.type == "tool_use"],
        "stop": stop_of(reply.stop_reason),
        "usage": counts_of(reply.usage, "input_tokens", "output_tokens"),
        "order": [f"{kinds[b.type]}:{texts[b.type](b)}" for b in reply.content if b.type in kinds],
    }


@functools.cache
def openai_client(base):
    from openai import OpenAI

    return OpenAI(api_key="none", base_url=base, max_retries=0)


def openai_chat(base, name):
    message, headers = [{"role": "user", "content": "x"}], {"x-stream": name}
    completions = openai_client(base).chat.completions
    with completions.stream(model="m", messages=message, extra_headers=headers) as stream:
        reply = stream.get_final_completion()
    choice = reply.choices[0]
    calls = choice.message.tool_calls or []
    return {
        "text": choice.message.content or "",
        "reasoning": "",
        "calls": [[call.id, call.function.name, json.loads(call.function.arguments or "{}")] for call in calls],
        "stop": stop_of(choice.finish_reason),
        "usage": counts_of(reply.usage, "prompt_tokens", "completion_tokens"),
        "order": [],
    }


def openai_responses(base, name):
    headers = {"x-stream": name}
    with openai_client(base).responses.stream(model="m", input="x", extra_headers=headers) as stream:
        reply = stream.get_final_response()
    calls = [item for item in reply.output if item.type == "function_call"]
    return {
        "text": reply.output_text,
        "reasoning": "".join(s.text for item in reply.output if item.type == "reasoning" for s in item.summary),
        "calls": [[call.call_id, call.name, json.loads(call.arguments or "{}")] for call in calls],
        "stop": stop_of(reply.status),
        "usage": counts_of(reply.usage, "input_tokens", "output_tokens"),
        "order": [item_of(item) for item in reply.output],
    }


def item_of(item):
    if item.type == "message":
        return "text:" + "".join(part.text for part in item.content if part.type == "output_text")
    if item.type == "reasoning":
        return "thought:" + "".join(part.text for part in item.summary)
    return f"call:{item.call_id}"


@functools.cache
def gemini_client(base):
    from google import genai

    return genai.Client(api_key="none", http_options={"base_url": base})


def gemini(base, name):
    text, thoughts, calls, stop, usage, order = "", "", [], None, [0, 0], []
    for chunk in gemini_client(base).models.generate_content_stream(model=name, contents="x"):
        candidate = chunk.candidates[0] if chunk.candidates else None
        for part in (candidate.content.parts if candidate and candidate.content else None) or []:
            if part.function_call:
                calls.append([part.function_call.id, part.function_call.name, part.function_call.args or {}])
                order.append(f"call:{part.function_call.id}")
            elif part.thought:
                thoughts += part.text or ""
                order.append(f"thought:{part.text or ''}")
            else:
                text += part.text or ""
                order.append(f"text:{part.text or ''}")
        stop = candidate.finish_reason.value if candidate and candidate.finish_reason else stop
        if chunk.usage_metadata:
            fields = ("prompt_token_count", "candidates_token_count", "thoughts_token_count")
            read, written, thought = counts_of(chunk.usage_metadata, *fields)
            usage = [read, written + thought]
    return {"text": text, "reasoning": thoughts, "calls": calls, "stop": stop_of(stop), "usage": usage, "order": order}


@functools.cache
def bedrock_client(base):
    import botocore.session
    from botocore.config import Config

    return botocore.session.get_session().create_client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=base,
        aws_access_key_id="AKID",
        aws_secret_access_key="none",
        config=Config(retries={"total_max_attempts": 1}),
    )


def bedrock_converse(base, name):
    reply = bedrock_client(base).converse_stream(modelId=name, messages=[{"role": "user", "content": [{"text": "x"}]}])
    blocks, stop, usage = {}, None, [0, 0]
    for event in reply["stream"]:
        if "contentBlockStart" in event:
            start = event["contentBlockStart"]
            blocks[start["contentBlockIndex"]] = {**start["start"]["toolUse"], "input": ""}
        elif "contentBlockDelta" in event:
            index, delta = event["contentBlockDelta"]["contentBlockIndex"], event["contentBlockDelta"]["delta"]
            block = blocks.setdefault(index, {"text": "", "thought": ""})
            if "text" in delta:
                block["text"] += delta["text"]
            elif "toolUse" in delta:
                block["input"] += delta["toolUse"]["input"]
            elif "reasoningContent" in delta:
                block["thought"] += delta["reasoningContent"].get("text", "")
        elif "messageStop" in event:
            stop = event["messageStop"]["stopReason"]
        elif "metadata" in event:
            usage = [event["metadata"].get("usage", {}).get(key, 0) for key in ("inputTokens", "outputTokens")]
    blocks = [blocks[index] for index in sorted(blocks)]
    order = [
        f"call:{b['toolUseId']}" if "toolUseId" in b else f"thought:{b['thought']}" if b["thought"] else f"text:{b['text']}"
        for b in blocks
    ]
    return {
        "text": "".join(block.get("text", "") for block in blocks),
        "reasoning": "".join(block.get("thought", "") for block in blocks),
        "calls": [[b["toolUseId"], b["name"], json.loads(b["input"] or "{}")] for b in blocks if "toolUseId" in b],
        "stop": stop_of(stop),
        "usage": usage,
        "order": order,
    }


def bedrock_invoke(base, name):
    """Takes the chunks out of their frames and has the other client read what was in them."""
    reply = bedrock_client(base).invoke_model_with_response_stream(modelId=name, body=b"{}")
    events = [event["chunk"]["bytes"] for event in reply["body"]]
    sse = b"".join(b"event: " + json.loads(e)["type"].encode() + b"\ndata: " + e + b"\n\n" for e in events)
    PLAYED[name + "-inner"] = ("text/event-stream", sse)
    return anthropic(base, name + "-inner")


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Player)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    answers = {}
    for stream in json.load(open(sys.argv[1])):
        amazon = stream["format"].startswith("bedrock")
        kind = "application/vnd.amazon.eventstream" if amazon else "text/event-stream"
        PLAYED[stream["id"]] = (kind, base64.b64decode(stream["base64"]))
        try:
            answers[stream["id"]] = globals()[stream["format"]](base, stream["id"])
        except Exception as error:  # What a client cannot read is an answer too.
            answers[stream["id"]] = {"error": f"{type(error).__name__}: {error}"}
    json.dump(answers, sys.stdout)


main()
