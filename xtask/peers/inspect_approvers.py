"""Which calls Inspect's `approvers:` patterns are about, for testdata/inspect/approvers.json.

    target/peers/inspect/bin/python xtask/peers/inspect_approvers.py > testdata/inspect/approvers.json

Patterns are made from the calls themselves (pieces of Inspect's own writing, with stars, question marks and classes put in), so
that about half of them fit.
"""

import asyncio
import json
import random
import sys

from inspect_ai.approval._policy import ApprovalPolicy, policy_approver
from inspect_ai.approval._auto import auto_approver
from inspect_ai._util.format import format_function_call
from inspect_ai.tool import ToolCall, ToolCallContent, ToolCallView

random.seed(20)
TOOLS = ["bash", "bash_session", "add", "web.search"]
TEXTS = [
    "rm -rf /", "ls", "sh -c 'x'", 'say "hi"', "it's \"both\"", "a\nb", "tab\there", "back\\slash", "[x]", "*",
    "x', force=True, y='", "", "caf\u00e9", "e\u0301", "\u200b", "\u00a0", "\U0001f600", "\x1b[0m", "\ue000",
]
SCALARS = [True, False, None, 0, 5, -3, 5.0, 0.5, 1e16, 1e-5, 123456789012345680.0, 1.5e300]


def value(depth=0):
    kind = random.random()
    if kind < 0.5 or depth > 2:
        return random.choice(TEXTS)
    if kind < 0.75:
        return random.choice(SCALARS)
    if kind < 0.88:
        return [value(depth + 1) for _ in range(random.randrange(4))]
    return {random.choice(["b", "a", "it's", "z"]): value(depth + 1) for _ in range(random.randrange(4))}


def call():
    names = random.sample(["command", "force", "args", "odd name"], random.randrange(4))
    return random.choice(TOOLS), {name: value() for name in names}


def pattern(name, arguments):
    text = format_function_call(name, arguments, width=sys.maxsize)
    start = 0 if random.random() < 0.6 else random.randrange(len(text))
    piece = text[start : start + random.randrange(1, len(text) - start + 1)]
    out = "*" if start else ""
    for c in piece:
        turn = random.random()
        if turn < 0.03:
            out += "?"
        elif turn < 0.06:
            out += "*"
        elif turn < 0.09:
            out += random.choice(["[%s]", "[!%s]", "[%s-z]", "[!-%s]"]) % c
        elif turn < 0.10:
            out += random.choice("xTn'\"\\")
        else:
            out += c
    return out


async def main():
    calls = [call() for _ in range(120)]
    records = []
    for name, arguments in calls:
        texts = [pattern(name, arguments) for _ in range(5)] + [pattern(*random.choice(calls)) for _ in range(2)]
        texts.append(random.choice(["bash", "b*", "*rm -rf*", "*force=True*", "bash, add", "*'--all'*", "????????"]))
        for text in texts:
            if not text.replace(",", "").strip() or any(p.strip().startswith("!") for p in text.split(",")):
                continue
            approve = policy_approver([ApprovalPolicy(auto_approver("approve"), text)])
            asked = ToolCall(id="1", function=name, arguments=arguments)
            view = ToolCallView(call=ToolCallContent(format="text", content=""))
            decision = (await approve("", asked, view, [])).decision
            records.append({"tools": text, "name": name, "arguments": arguments, "about": decision == "approve"})
    print('{"about": "Which calls the patterns of approvers files are about in inspect_ai 0.3.285, made by xtask/peers/inspect_approvers.py.",')
    print(' "vectors": [')
    print(",\n".join("  " + json.dumps(record) for record in records))
    print(" ]}")


asyncio.run(main())
