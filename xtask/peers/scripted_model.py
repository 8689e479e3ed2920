"""A scripted model on loopback that speaks the APIs of four agents: OpenAI Responses (Codex), Anthropic Messages
(Claude Code), OpenAI Chat (opencode) and Gemini (Gemini CLI). Standard library only.

usage: scripted_model.py SCRIPT LOG

SCRIPT is a JSON list of calls, [{"tool": NAME, "arguments": {...}}, ...]: the Nth answer asks for the Nth call,
and the answer after the last one is the text "done". A tool is found among those of the request by the end of
its name, so that each agent's way to name the tools of a server is learned from the agent itself. Every request
is appended to LOG, one JSON object a line. The port is printed first.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCRIPT = json.load(open(sys.argv[1]))
LOG = open(sys.argv[2], "a")
LOCK = threading.Lock()


def find(names, wanted):
    """The name of a tool among those that were offered: the name itself, or one that ends with it."""
    for same in (lambda name: name == wanted, lambda name: name.endswith("_" + wanted)):
        for name in names:
            if same(name):
                return name
    return None


def call_for(body, names, done):
    """The next call of the script, or None at its end. Requests without tools are not part of the task."""
    if not names or done >= len(SCRIPT):
        return None
    call = SCRIPT[done]
    wanted = call["tool"] if isinstance(call["tool"], list) else [call["tool"]]
    name = next((found for found in (find(names, one) for one in wanted) if found), wanted[0])
    return name, call["arguments"]


def sse(events):
    lines = []
    for name, data in events:
        if name:
            lines.append(f"event: {name}\n")
        lines.append(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")
    return "".join(lines).encode()


def responses(body):
    names, spaces = [], {}
    for tool in body.get("tools", []):
        if tool.get("type") == "namespace":
            for inner in tool.get("tools", []):
                names.append(inner["name"])
                spaces[inner["name"]] = tool["name"]
        elif "name" in tool:
            names.append(tool["name"])
    kinds = ("function_call_output", "custom_tool_call_output")
    done = sum(item.get("type") in kinds for item in body.get("input", []) if isinstance(item, dict))
    call = call_for(body, names, done)
    if call:
        item = {"type": "function_call", "id": f"fc_{done}", "call_id": f"call_{done}", "name": call[0],
                "arguments": json.dumps(call[1])}
        if call[0] in spaces:
            item["namespace"] = spaces[call[0]]
    else:
        item = {"type": "message", "id": "msg_1", "role": "assistant",
                "content": [{"type": "output_text", "text": "done", "annotations": []}]}
    usage = {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2}
    return sse([
        ("response.created", {"type": "response.created", "response": {"id": "r1"}}),
        ("response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}),
        ("response.completed", {"type": "response.completed",
                                "response": {"id": "r1", "output": [item], "usage": usage}}),
    ])


def messages(body):
    names = [tool["name"] for tool in body.get("tools", [])]
    done = sum(
        block.get("type") == "tool_result"
        for message in body["messages"] if isinstance(message["content"], list)
        for block in message["content"]
    )
    call = call_for(body, names, done)
    start = {"type": "message_start", "message": {
        "id": "m1", "type": "message", "role": "assistant", "model": body.get("model"), "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}}
    if call:
        block = {"type": "tool_use", "id": f"toolu_{done}", "name": call[0], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}
    stop = "tool_use" if call else "end_turn"
    if not body.get("stream"):
        content = dict(block, input=call[1]) if call else {"type": "text", "text": "done"}
        return json.dumps(dict(start["message"], content=[content], stop_reason=stop)).encode()
    events = [
        start,
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
         "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return sse([(event["type"], event) for event in events])


def chat(body):
    names = [tool["function"]["name"] for tool in body.get("tools", [])]
    done = sum(message.get("role") == "tool" for message in body["messages"])
    call = call_for(body, names, done)
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message = {"tool_calls": [{"index": 0, "id": f"call_{done}", "type": "function", "function": function}]}
    else:
        message = {"content": "done"}
    message["role"] = "assistant"
    reason = "tool_calls" if call else "stop"
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model")}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return json.dumps(dict(head, object="chat.completion", choices=[choice], usage=usage)).encode()
    return sse([
        (None, dict(head, choices=[{"index": 0, "delta": message, "finish_reason": None}])),
        (None, dict(head, choices=[{"index": 0, "delta": {}, "finish_reason": reason}], usage=usage)),
        (None, "[DONE]"),
    ])


def gemini(body, stream):
    names = [one["name"] for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [])]
    done = sum(
        "functionResponse" in part
        for content in body.get("contents", []) if content.get("role") == "user"
        for part in content.get("parts", [])
    )
    call = call_for(body, names, done)
    if call:
        part = {"functionCall": {"name": call[0], "args": call[1]}}
    elif not names:
        # Gemini CLI asks for the next speaker, and for other decisions, as JSON.
        part = {"text": "{\"next_speaker\": \"user\", \"reasoning\": \"done\", \"complexity_reasoning\": \"none\", "
                        "\"complexity_score\": 1, \"model_choice\": \"pro\"}"}
    else:
        part = {"text": "done"}
    answer = {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }
    return sse([(None, answer)]) if stream else json.dumps(answer).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, body, kind="application/json", status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(b'{"object": "list", "data": [{"id": "m", "object": "model"}], "models": []}')

    def do_HEAD(self):
        self.reply(b"")

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            return self.reply(b"{}")
        path = self.path.split("?")[0]
        with LOCK:
            LOG.write(json.dumps({"path": path, "body": body}) + "\n")
            LOG.flush()
        if path.endswith("count_tokens") or path.endswith(":countTokens"):
            return self.reply(b'{"input_tokens": 1, "totalTokens": 1}')
        if path.endswith("/responses"):
            return self.reply(responses(body), "text/event-stream")
        if path.endswith("/messages"):
            return self.reply(messages(body), "text/event-stream" if body.get("stream") else "application/json")
        if path.endswith("/chat/completions"):
            return self.reply(chat(body), "text/event-stream" if body.get("stream") else "application/json")
        if ":streamGenerateContent" in path:
            return self.reply(gemini(body, True), "text/event-stream")
        if ":generateContent" in path:
            return self.reply(gemini(body, False))
        self.reply(b"{}")


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
