"""The module `toolwright` that a file of tools can import: `tool`, `ToolError`, `Context`, `Image`."""

import asyncio
import pathlib
import threading

import _toolwright_results as results


class ToolError(Exception):
    """An error for the model, with a kind of Toolwright's and a hint."""

    def __init__(self, message="", kind="unknown", hint=None):
        super().__init__(message)
        self.kind = kind
        self.hint = hint


def tool(function=None, *, name=None, description=None, read_only=None, parallel=None, timeout=None,
         isolate=None):
    """Marks a function as a tool. Where one is marked, the others of the file are not offered."""

    def mark(one):
        one.__toolwright_tool__ = {
            "name": name, "description": description, "read_only": read_only, "parallel": parallel,
            "timeout": timeout, "isolate": isolate,
        }
        return one

    return mark if function is None else mark(function)


def Image(data=None, *, path=None, format=None):
    """A picture, from bytes or from a file."""
    if data is None:
        data = pathlib.Path(path).read_bytes()
    known = results.picture_of(bytes(data))
    mime = "image/%s" % format if format else known.mime if known else None
    if mime is None:
        raise ToolError("these bytes are no picture that is known; name its `format`")
    return results.Picture(mime, data)


class Context:
    """What a tool can do while it runs. In `async def` functions the methods that wait are awaited."""

    def __init__(self, worker, call):
        self._worker = worker
        self._call = call

    def progress(self, done, total=None, message=""):
        """Reports how far the work is."""
        frame = {"type": "progress", "id": self._call, "done": float(done), "message": str(message)}
        if total is not None:
            frame["total"] = float(total)
        self._worker.wire.send(frame)

    def call_tool(self, name, /, **arguments):
        """Calls another tool of the run, and returns its value."""
        return self._ask({"what": "call_tool", "tool": name, "arguments": results.Result().plain(arguments, "arguments", 0, [])})

    def exec(self, *command, input=None, timeout=None):
        """Runs a command in the sandbox of the run: `{code, stdout, stderr}`."""
        return self._ask({"what": "exec", "command": [str(word) for word in command], "input": input, "timeout": timeout})

    def get(self, key, default=None):
        """A value kept for the run."""
        return self._ask({"what": "get", "key": str(key), "default": default})

    def set(self, key, value):
        """Keeps a value for the run; it survives the worker."""
        return self._ask({"what": "set", "key": str(key), "value": results.Result().plain(value, "value", 0, [])})

    def _ask(self, question):
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._worker.ask(self._call, question)
        return loop.run_in_executor(None, self._worker.ask, self._call, question)


class Answers:
    """Questions to the parent that wait for their answers."""

    def __init__(self):
        self._lock = threading.Lock()
        self._waiting = {}
        self._next = 0

    def open(self):
        with self._lock:
            self._next += 1
            self._waiting[self._next] = entry = [threading.Event(), None]
            return self._next, entry

    def give(self, number, answer):
        with self._lock:
            entry = self._waiting.pop(number, None)
        if entry is not None:
            entry[1] = answer
            entry[0].set()
