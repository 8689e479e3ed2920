"""Finds the tools of a file."""

import functools
import importlib.util
import inspect
import os
import sys
import types
import typing

import _toolwright_docstring as docstring
import _toolwright_schema as schema

# Parameters of these classes are given by us, by the name of the class, so that libraries need not be there.
CONTEXTS = {"Context", "ToolContext", "ToolRuntime", "RunContext", "RunContextWrapper"}
# What marks a parameter that another library gives.
INJECTED = {"InjectedToolArg", "_DirectlyInjectedToolArg", "Resolve"}
LISTS = ("AVAILABLE_TOOLS", "TOOLS", "tools")


class Found:
    """A tool: what is called, and what a model sees of it."""

    def __init__(self, name, function, target):
        self.name = name
        self.function = function
        self.target = target
        self.hints = {}
        self.passing = {}
        self.defaults = {}
        self.contexts = []
        self.isolate = None
        self.notes = []
        self.definition = {}


def load(path):
    """Imports the file as a module of its own name."""
    folder = os.path.dirname(path)
    sys.path.insert(0, folder)
    name = os.path.splitext(os.path.basename(path))[0]
    name = name if name.isidentifier() and name not in sys.modules else "tools_" + "".join(
        letter if letter.isalnum() else "_" for letter in name)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        # A file with another ending than `.py`.
        from importlib.machinery import SourceFileLoader
        spec = importlib.util.spec_from_loader(name, SourceFileLoader(name, path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def candidates(module):
    """The objects that are to be tools, by name: marked ones, a list, `__all__`, or the public functions."""
    members = list(vars(module).items())
    marked = [(name, one) for name, one in members if _marked(one)]
    if marked:
        return marked
    for name in LISTS:
        listed = vars(module).get(name)
        if isinstance(listed, dict) and listed:
            return [(str(key), one) for key, one in listed.items()]
        if isinstance(listed, (list, tuple)) and listed and all(_callable(one) for one in listed):
            return [(_own_name(one), one) for one in listed]
    exported = vars(module).get("__all__")
    if isinstance(exported, (list, tuple)):
        return [(str(name), getattr(module, str(name), None)) for name in exported]
    return [
        (name, one) for name, one in members
        if not name.startswith("_") and (
            inspect.isfunction(one) and one.__module__ == module.__name__ or _is_tool_object(one)
        )
    ]


def _marked(one):
    try:
        return not isinstance(one, type) and isinstance(getattr(one, "__toolwright_tool__", None), dict)
    except BaseException:
        return False


def _is_tool_object(one):
    """A tool object of another library: it has a name, a description, and a function or method to call."""
    if isinstance(one, (type, types.ModuleType)) or inspect.isroutine(one):
        return False
    try:
        named = isinstance(getattr(one, "name", None), str) and isinstance(getattr(one, "description", None), str)
        return named and _target(one) is not one
    except BaseException:
        # Of an object that only refuses to be looked at.
        return False


def _target(one):
    """The function that does the work of a tool object."""
    for name in ("coroutine", "func", "fn", "use_tool", "_run", "run"):
        function = getattr(one, name, None)
        if callable(function):
            return function
    return one


def _callable(one):
    return callable(one) or _is_tool_object(one)


def _own_name(one):
    if isinstance(one, functools.partial):
        return _own_name(one.func)
    return getattr(one, "name", None) or getattr(one, "__name__", None) or type(one).__name__


def tools(module):
    """The tools of a module, and what is left out with its line and reason."""
    found, left_out, names = [], [], set()
    for name, one in candidates(module):
        try:
            tool = _tool(name, one)
            if tool.name in names:
                raise schema.Unsupported("there are two tools of this name")
            names.add(tool.name)
            found.append(tool)
        except BaseException as error:
            reason = str(error) if isinstance(error, schema.Unsupported) else "%s: %s" % (type(error).__name__, error)
            left_out.append({"name": str(name), "line": _line(one), "reason": reason})
    return found, left_out


def _line(one):
    try:
        return schema.innermost(_target(one) if _is_tool_object(one) else one).__code__.co_firstlineno
    except AttributeError:
        return None


def _is_context(hint):
    """Whether a hint means what we give: by the name of its class, alone, optional or annotated."""
    if hint is None:
        return False
    origin = typing.get_origin(hint)
    if origin is typing.Annotated or origin is not None and schema.is_union(origin):
        parts = [one for one in typing.get_args(hint)[:None if origin is not typing.Annotated else 1]
                 if one is not type(None)]
        return len(parts) == 1 and _is_context(parts[0])
    return getattr(origin or hint, "__name__", "") in CONTEXTS


def _is_injected(hint):
    marks = [*getattr(hint, "__metadata__", ()), hint]
    kinds = [one if isinstance(one, type) else type(one) for one in marks]
    return any(base.__name__ in INJECTED for kind in kinds for base in getattr(kind, "__mro__", ()))


def _tool(name, one):
    if one is None:
        raise schema.Unsupported("the module has nothing of this name")
    marks = getattr(one, "__toolwright_tool__", None) or {}
    target = _target(one) if _is_tool_object(one) else one
    if not callable(target) or isinstance(target, type):
        raise schema.Unsupported("it cannot be called")
    inner = schema.innermost(target)
    is_object = target is not one
    name = marks.get("name") or (one.name if is_object else name)
    tool = Found(str(name), target, one)
    doc = docstring.read(inspect.getdoc(inner) or inspect.getdoc(target) or "")
    text = marks.get("description") or (one.description if is_object else None) or doc.description
    signature = inspect.signature(target)
    raw = schema.hints_of(inner, [])
    tool.contexts = [name for name in signature.parameters if _is_context(raw.get(name))]
    injected = [name for name in signature.parameters if name not in tool.contexts and _is_injected(raw.get(name))]
    for parameter in map(signature.parameters.get, injected):
        if parameter.default is inspect.Parameter.empty:
            raise schema.Unsupported("another library gives the parameter `%s`, and it is not here" % parameter.name)
        tool.notes.append("`%s` is not offered: another library gives it" % parameter.name)
    tool_schema = schema.of_function(target, doc, tool.contexts + injected, tool.notes)
    parameters, tool.hints, tool.passing, tool.defaults = tool_schema
    if not text:
        tool.notes.append("there is no description; a docstring would be one")
    tool.isolate = marks.get("isolate")
    is_async = inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner)
    # A child has a loop of its own for each call.
    is_async = is_async and not tool.isolate
    tool.definition = {
        "name": tool.name, "description": text or "", "parameters": parameters, "async": is_async,
        "line": _line(one), "notes": tool.notes, "read_only": marks.get("read_only"),
        "parallel": marks.get("parallel"), "timeout": marks.get("timeout"),
    }
    output = schema.of_result(tool.hints.get("return", inspect.Parameter.empty), tool.notes)
    if output is not None:
        tool.definition["output"] = output
    return tool
