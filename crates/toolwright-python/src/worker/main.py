"""The worker: loads a file, says which tools it has, and makes calls."""

import asyncio
import contextvars
import fcntl
import inspect
import io
import os
import queue
import signal
import sys
import threading
import traceback

import _toolwright_api as api
import _toolwright_discover as discover
import _toolwright_isolate as isolate
import _toolwright_results as results
import _toolwright_values as values
import _toolwright_wire as wire

CURRENT = contextvars.ContextVar("toolwright_call", default=None)
# Wakes the main thread, which may wait for an answer.
WAKE = object()
# Classes whose messages are meant for the model, by name, so that their libraries need not be there.
FOR_MODEL = {"ToolError", "ModelRetry", "ToolException", "ToolRetryError", "Misfit"}
KINDS = (
    (TimeoutError, "timeout"), (asyncio.TimeoutError, "timeout"), (PermissionError, "permission"),
    (FileNotFoundError, "file_not_found"), (IsADirectoryError, "is_a_directory"),
    (UnicodeDecodeError, "unicode_decode"),
)
KNOWN = {
    "parsing", "timeout", "unicode_decode", "permission", "file_not_found", "is_a_directory", "limit",
    "output_limit", "approval", "cancelled", "unknown", "fatal",
}


class Stream(io.TextIOBase):
    """`sys.stdout` and `sys.stderr`: text goes to the call that writes it."""

    def __init__(self, worker, name, descriptor):
        self._worker = worker
        self._stream = name
        self._descriptor = descriptor

    @property
    def name(self):
        return "<%s>" % self._stream

    @property
    def encoding(self):
        return "utf-8"

    def fileno(self):
        return self._descriptor

    def isatty(self):
        return False

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not %s" % type(text).__name__)
        self._worker.output(CURRENT.get(), self._stream, text)
        return len(text)

    @property
    def buffer(self):
        return Binary(self)


class Binary(io.RawIOBase):
    def __init__(self, stream):
        self._out = stream

    def writable(self):
        return True

    def write(self, data):
        self._out.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


class Worker:
    def __init__(self, source, sink):
        self.wire = wire.Wire(source, sink)
        self.answers = api.Answers()
        self.queue = queue.SimpleQueue()
        self.tools = {}
        self.current = None
        self.cancelled = set()
        self.loop = None
        self.tasks = {}
        self.isolate = False

    def output(self, call, stream, text):
        if self.wire.forked or isinstance(self.wire, isolate.Isolated) and stream != "result":
            # A child has the pipe alone.
            os.write(2 if stream == "stderr" else 1, text.encode("utf-8", "replace"))
            return
        for at in range(0, len(text), 1 << 16):
            self.wire.send({"type": "output", "id": call, "stream": stream, "text": text[at:at + (1 << 16)]})

    def ask(self, call, question):
        answer = self.answer_to(call, question)
        if "error" in answer:
            raise api.ToolError(answer["error"], answer.get("kind", "unknown"), answer.get("hint"))
        return answer.get("value")

    def answer_to(self, call, question):
        if isinstance(self.wire, isolate.Isolated):
            self.wire.send(dict(question, type="ask"))
            return self.wire.receive()
        number, entry = self.answers.open()
        self.wire.send(dict(question, type="ask", id=call, number=number))
        if threading.current_thread() is threading.main_thread():
            # What is asked for may be a call of this file, which needs this thread.
            while not entry[0].is_set():
                frame = self.queue.get()
                if frame is not WAKE:
                    self._serve_one(frame)
        entry[0].wait()
        return entry[1]

    def relayed(self, call, question):
        """The answer to a question of a child."""
        answer = self.answer_to(call, question)
        return {name: answer[name] for name in ("value", "error", "kind", "hint") if name in answer}

    def become_child(self, connection):
        """In a child: frames go to the worker, and interrupts end it."""
        self.wire.close()
        self.wire = connection
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def start(self, header):
        self.isolate = bool(header.get("isolate"))
        self._redirect()
        threading.Thread(target=self._read, daemon=True).start()
        signal.signal(signal.SIGINT, self._interrupted)
        try:
            import toolwright  # noqa: F401
        except ImportError:
            sys.modules["toolwright"] = api
        try:
            module = discover.load(header["file"])
            found, left_out = discover.tools(module)
        except BaseException as error:
            self.wire.send(dict(failure(error), type="failed"))
            return False
        self.tools = {tool.name: tool for tool in found}
        self.wire.send({
            "type": "tools", "tools": [tool.definition for tool in found], "left_out": left_out,
            "python": "%d.%d.%d" % sys.version_info[:3],
        })
        return True

    def serve(self):
        while True:
            frame = self.queue.get()
            if frame is not WAKE:
                self._serve_one(frame)

    def _serve_one(self, frame):
        number, before = frame["id"], self.current
        if number in self.cancelled:
            self.cancelled.discard(number)
            self.end(number, {"kind": "cancelled", "message": "the call was cancelled before it began"})
            return
        self.current = number
        token = CURRENT.set(number)
        try:
            own = self.tools[frame["tool"]].isolate
            if self.isolate if own is None else own:
                isolate.call(self, number, lambda: self._sync(frame))
            else:
                self._sync(frame)
        except KeyboardInterrupt:
            self.end(number, {"kind": "cancelled", "message": "the call was cancelled"})
        finally:
            self.current = before
            self.cancelled.discard(number)
            CURRENT.reset(token)

    def _sync(self, frame):
        tool = self.tools[frame["tool"]]
        try:
            positional, named = self.arguments(tool, frame)
            value = tool.function(*positional, **named)
            if inspect.isawaitable(value):
                value = asyncio.run(awaited(value))
            elif inspect.isgenerator(value):
                value = self.collect(frame["id"], value)
            header, attachments = results.write(value)
            self.wire.send(dict(header, type="result", id=frame["id"]), attachments)
        except (KeyboardInterrupt, wire.Closed):
            raise
        except BaseException as error:
            self.end(frame["id"], failure(error))

    async def _async(self, frame):
        number, tool = frame["id"], self.tools[frame["tool"]]
        CURRENT.set(number)
        try:
            positional, named = self.arguments(tool, frame)
            value = tool.function(*positional, **named)
            if inspect.isasyncgen(value):
                items = []
                async for one in value:
                    self.streamed(number, items, one)
                value = joined(items)
            elif inspect.isawaitable(value):
                value = await value
            header, attachments = results.write(value)
            self.wire.send(dict(header, type="result", id=number), attachments)
        except (asyncio.CancelledError, wire.Closed):
            raise
        except BaseException as error:
            self.end(number, failure(error))

    def arguments(self, tool, frame):
        """Positional and named arguments, as the hints of the function name them."""
        positional, named, star = [], {}, []
        given = dict(frame["arguments"])
        # Defaults that only pydantic knows; Python would pass the `Field` itself.
        ours = {name: make() for name, make in tool.defaults.items() if name not in given}
        for name, how in tool.passing.items():
            if name in ours:
                positional.append(ours.pop(name))
                continue
            if name not in given:
                continue
            value = values.fit_argument(tool, name, given.pop(name), how)
            if how == "star":
                star = value
            else:
                positional.append(value)
        if star:
            # What stands before `*args` cannot be named when `*args` gets values.
            for name, parameter in inspect.signature(tool.function).parameters.items():
                if parameter.kind is parameter.VAR_POSITIONAL:
                    break
                if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                    if name in tool.contexts:
                        positional.append(api.Context(self, frame["id"]))
                    elif name in given:
                        positional.append(values.fit_argument(tool, name, given.pop(name), None))
                    elif name in ours:
                        positional.append(ours.pop(name))
                    else:
                        positional.append(parameter.default)
        for name in tool.contexts:
            if not star or inspect.signature(tool.function).parameters[name].kind is inspect.Parameter.KEYWORD_ONLY:
                named[name] = api.Context(self, frame["id"])
        for name, value in given.items():
            named[name] = values.fit_argument(tool, name, value, None)
        return [*positional, *star], dict(named, **ours)

    def collect(self, number, generator):
        items = []
        for one in generator:
            self.streamed(number, items, one)
        return joined(items)

    def streamed(self, number, items, one):
        """Takes one value of a generator; text is reported at once."""
        if len(items) >= results.MAX_VALUES:
            raise results.Unwritable("the function yields more than %d values" % results.MAX_VALUES)
        if isinstance(one, str):
            self.output(number, "result", one)
        items.append(one)

    def end(self, number, problem):
        self.wire.send(dict(problem, type="error", id=number))

    def _redirect(self):
        """Output of Python goes to the call that writes it; that of descriptors to the call that runs."""
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            low, into = os.pipe()
            # High, where a function that closes or opens descriptors does not meet it.
            out = high(low)
            os.close(low)
            os.dup2(into, descriptor)
            os.close(into)
            stream = Stream(self, name, descriptor)
            setattr(sys, name, stream)
            setattr(sys, "__%s__" % name, stream)
            threading.Thread(target=self._pump, args=(out, name), daemon=True).start()

    def _pump(self, out, name):
        while True:
            try:
                data = os.read(out, 1 << 16)
            except OSError:
                return
            if not data:
                return
            self.output(self.current, name, data.decode("utf-8", "replace"))

    def _read(self):
        """Takes frames of the parent while the main thread works."""
        try:
            while True:
                frame = self.wire.receive()
                if frame["type"] == "call":
                    tool = self.tools.get(frame["tool"])
                    if tool is not None and tool.definition["async"]:
                        self._submit(frame)
                    else:
                        self.queue.put(frame)
                elif frame["type"] == "cancel":
                    self._cancel(frame["id"])
                elif frame["type"] == "answer":
                    self.answers.give(frame["number"], frame)
                    self.queue.put(WAKE)
        except BaseException:
            # The parent is gone, or the connection is broken: nobody waits for results.
            os._exit(0)

    def _submit(self, frame):
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            threading.Thread(target=self.loop.run_forever, daemon=True).start()

        number = frame["id"]

        def begin():
            task = self.tasks[number] = self.loop.create_task(self._async(frame))
            task.add_done_callback(done)

        def done(task):
            self.tasks.pop(number, None)
            # A task that is cancelled before its first step never runs, so it cannot report that itself.
            if task.cancelled():
                self.end(number, {"kind": "cancelled", "message": "the call was cancelled"})

        self.loop.call_soon_threadsafe(begin)

    def _cancel(self, number):
        if self.loop is not None:
            def cancel():
                task = self.tasks.get(number)
                if task is not None:
                    task.cancel()

            self.loop.call_soon_threadsafe(cancel)
            if number in self.tasks:
                return
        self.cancelled.add(number)
        if self.current == number:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    def _interrupted(self, *_):
        if self.current is not None and self.current in self.cancelled:
            raise KeyboardInterrupt


def high(descriptor):
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 500)
    except OSError:
        return os.dup(descriptor)


async def awaited(value):
    return await value


def joined(items):
    """What a generator yields: text as one text, everything else as a list."""
    return "".join(items) if items and all(isinstance(one, str) for one in items) else items


def failure(error):
    """The kind, the text for the model, and the trace for the operator."""
    name = type(error).__name__
    kind, hint = "unknown", None
    try:
        message = str(error)
    except BaseException as problem:
        message = "its text cannot be made (%s)" % type(problem).__name__
    names = {base.__name__ for base in type(error).__mro__}
    if names & FOR_MODEL:
        own = getattr(error, "kind", None)
        kind = own if isinstance(own, str) and own in KNOWN else "parsing" if name == "Misfit" else "unknown"
        own = getattr(error, "hint", None)
        hint = own if isinstance(own, str) else None
        message = message or name
    else:
        for base, word in KINDS:
            if isinstance(error, base):
                kind = word
                break
        message = "%s: %s" % (name, message) if message else name
    problem = {"kind": kind, "message": message[:20_000], "trace": trace(error)}
    if hint:
        problem["hint"] = hint[:4_000]
    return problem


def trace(error):
    """The traceback without the frames of this worker, at most 8 KB."""
    try:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if not frame.filename.startswith(("<_toolwright", "<string>", "<frozen"))]
        lines = traceback.format_list(own) + traceback.format_exception_only(type(error), error)
        return "".join(lines)[-8_192:]
    except BaseException:
        return type(error).__name__


def run(source, sink, header):
    worker = Worker(source, sink)
    if worker.start(header):
        worker.serve()
    os._exit(0)
