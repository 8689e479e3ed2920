"""JSON Schema of type hints."""

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import ipaddress
import json
import pathlib
import re
import sys
import types
import typing
import uuid

SIMPLE = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    complex: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.timedelta: {"type": "number", "description": "In seconds."},
    decimal.Decimal: {"type": ["number", "string"]},
    uuid.UUID: {"type": "string", "format": "uuid"},
    pathlib.Path: {"type": "string", "format": "path"},
    pathlib.PurePath: {"type": "string", "format": "path"},
    ipaddress.IPv4Address: {"type": "string", "format": "ipv4"},
    ipaddress.IPv6Address: {"type": "string", "format": "ipv6"},
    re.Pattern: {"type": "string", "format": "regex"},
    object: {},
}
SEQUENCES = (
    list, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Iterable,
    collections.abc.Collection, collections.abc.Iterator, collections.deque,
)
SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
MAPPINGS = (
    dict, collections.abc.Mapping, collections.abc.MutableMapping, collections.OrderedDict,
    collections.defaultdict,
)
UNION = getattr(types, "UnionType", None)
ALIAS = getattr(typing, "TypeAliasType", None)
# What pydantic reads, by hint.
ADAPTERS = {}
BOUNDS = {
    "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
# Names that docstrings use for types.
WORDS = {
    "str": str, "string": str, "text": str, "int": int, "integer": int, "float": float, "number": float,
    "bool": bool, "boolean": bool, "list": list, "array": list, "dict": dict, "dictionary": dict,
    "object": dict, "any": typing.Any, "tuple": tuple, "set": set, "none": type(None), "bytes": bytes,
}


class Unsupported(Exception):
    """A hint that no JSON value can satisfy."""


def origin_of(hint):
    return typing.get_origin(hint)


def is_union(origin):
    return origin is typing.Union or (UNION is not None and origin is UNION)


def is_typed_dict(hint):
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__total__")


def is_named_tuple(hint):
    return isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def is_pydantic(hint):
    return isinstance(hint, type) and hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate")


def is_old_pydantic(hint):
    """A model in the way of pydantic 1."""
    return isinstance(hint, type) and hasattr(hint, "__fields__") and hasattr(hint, "parse_obj") and not is_pydantic(hint)


def adapter(hint):
    """pydantic's own reader of a hint that only pydantic can read; `None` where it is not in use."""
    make = getattr(sys.modules.get("pydantic"), "TypeAdapter", None)
    if make is None:
        return None
    origin, metadata = typing.get_origin(hint), getattr(hint, "__metadata__", ())
    if origin is typing.Annotated:
        known = any((type(one).__module__ or "").split(".")[0] == "pydantic" for one in metadata)
        if not known and adapter(typing.get_args(hint)[0]) is None:
            return None
    elif not (isinstance(hint, type) and hasattr(hint, "__get_pydantic_core_schema__")):
        return None
    if not hashable(hint):
        return make(hint)
    if hint not in ADAPTERS:
        ADAPTERS[hint] = make(hint)
    return ADAPTERS[hint]


def field_default(one):
    """What makes the default that a `Field` names; `None` when it names none."""
    required, default = getattr(one, "is_required", None), getattr(one, "get_default", None)
    if not callable(required) or not callable(default) or required():
        return None
    return lambda: default(call_default_factory=True)


def hints_of(owner, notes, where=""):
    """The hints of a function or class. One that cannot be evaluated is left out and noted."""
    try:
        return typing.get_type_hints(owner, include_extras=True)
    except Exception:
        pass
    hints = {}
    names = dict(vars(sys.modules.get(getattr(owner, "__module__", ""), types)), **vars(typing))
    names.update(getattr(owner, "__globals__", {}))
    for name, hint in (getattr(owner, "__annotations__", None) or {}).items():
        if isinstance(hint, str):
            try:
                hint = eval(hint, names)
            except Exception as error:
                notes.append("%sthe hint of `%s` cannot be read (%s), so any value is accepted" % (where, name, error))
                hint = typing.Any
        hints[name] = hint
    return hints


class Schemas:
    """Schemas of the hints of one function; classes are shared below `$defs`."""

    def __init__(self, notes):
        self.notes = notes
        self.definitions = {}
        self._names = {}

    def of(self, hint):
        """The schema of a hint."""
        if isinstance(hint, str):
            self.notes.append("the hint `%s` is text that cannot be read, so any value is accepted" % hint)
            return {}
        if hint is None:
            return {"type": "null"}
        if hint is typing.Any or hint is inspect.Parameter.empty:
            return {}
        if hashable(hint) and hint in SIMPLE:
            return dict(SIMPLE[hint])
        if hint is getattr(typing, "LiteralString", object()):
            return {"type": "string"}
        origin, arguments = origin_of(hint), typing.get_args(hint)
        if origin is not None:
            return self._generic(hint, origin, arguments)
        if ALIAS is not None and isinstance(hint, ALIAS):
            return self._shared(hint, hint.__name__, lambda: self.of(hint.__value__))
        if isinstance(hint, typing.TypeVar):
            if hint.__bound__ is not None:
                return self.of(hint.__bound__)
            return self._any_of([self.of(one) for one in hint.__constraints__]) if hint.__constraints__ else {}
        if hasattr(hint, "__supertype__"):
            return self.of(hint.__supertype__)
        if isinstance(hint, type):
            return self._class(hint)
        raise Unsupported("`%s` has no form in JSON" % _name(hint))

    def _generic(self, hint, origin, arguments):
        if origin is typing.Annotated:
            return self._annotated(arguments[0], hint.__metadata__)
        if is_union(origin):
            return self._any_of([self.of(one) for one in arguments])
        if origin is typing.Literal:
            return _enumeration(list(arguments))
        if getattr(origin, "__name__", getattr(origin, "_name", "")) in ("Required", "NotRequired", "ReadOnly") or \
                str(origin).rsplit(".", 1)[-1] in ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar"):
            return self.of(arguments[0])
        if ALIAS is not None and isinstance(origin, ALIAS):
            return self.of(origin.__value__[arguments])
        if origin is tuple:
            if len(arguments) == 2 and arguments[1] is Ellipsis:
                return {"type": "array", "items": self.of(arguments[0])}
            if arguments in ((), ((),)):
                return {"type": "array", "maxItems": 0}
            return {
                "type": "array", "prefixItems": [self.of(one) for one in arguments],
                "minItems": len(arguments), "maxItems": len(arguments),
            }
        if origin in SEQUENCES:
            return _array(self.of(arguments[0]))
        if origin in SETS:
            return dict(_array(self.of(arguments[0])), uniqueItems=True)
        if origin in MAPPINGS:
            return self._mapping(arguments)
        if origin is type or origin is collections.abc.Callable:
            raise Unsupported("`%s` has no form in JSON" % _name(hint))
        if isinstance(origin, type):
            return self._class(origin)
        raise Unsupported("`%s` has no form in JSON" % _name(hint))

    def _mapping(self, arguments):
        schema = {"type": "object"}
        if arguments:
            values = self.of(arguments[1])
            schema["additionalProperties"] = values if values else True
        return schema

    def _annotated(self, hint, metadata):
        schema = self.of(hint)
        if "$ref" in schema:
            schema = {"allOf": [schema]} if metadata else schema
        for one in metadata:
            if isinstance(one, str):
                schema["description"] = one
            else:
                _constrain(schema, one)
        if list(schema) == ["allOf"]:
            return schema["allOf"][0]
        return schema

    def _class(self, hint):
        if issubclass(hint, enum.Enum):
            return _enumeration([member.value for member in hint])
        if is_pydantic(hint):
            return self._pydantic(hint, hint.model_json_schema)
        if is_old_pydantic(hint):
            return self._pydantic(hint, hint.schema)
        if is_typed_dict(hint):
            return self._shared(hint, hint.__name__, lambda: self._typed_dict(hint))
        if dataclasses.is_dataclass(hint):
            return self._shared(hint, hint.__name__, lambda: self._dataclass(hint))
        if is_named_tuple(hint):
            return self._shared(hint, hint.__name__, lambda: self._named_tuple(hint))
        for simple in (bool, int, float, str, bytes):
            if issubclass(hint, simple):
                return dict(SIMPLE[simple])
        if hint is tuple or issubclass(hint, SEQUENCES[:1]) or hint in SEQUENCES:
            return {"type": "array"}
        if issubclass(hint, (set, frozenset)) or hint in SETS:
            return {"type": "array", "uniqueItems": True}
        if issubclass(hint, dict) or hint in MAPPINGS:
            return {"type": "object"}
        if issubclass(hint, pathlib.PurePath):
            return dict(SIMPLE[pathlib.Path])
        read = adapter(hint)
        if read is not None:
            return self._pydantic(hint, read.json_schema)
        raise Unsupported("the class `%s` has no form in JSON; a dataclass or TypedDict has" % _name(hint))

    def _typed_dict(self, hint):
        hints = hints_of(hint, self.notes, "%s: " % hint.__name__)
        required = [name for name in hints if name in getattr(hint, "__required_keys__", hints)]
        return self._object(hint, {name: self.of(one) for name, one in hints.items()}, required)

    def _dataclass(self, hint):
        hints, properties, required = hints_of(hint, self.notes, "%s: " % hint.__name__), {}, []
        for field in dataclasses.fields(hint):
            if not field.init:
                continue
            properties[field.name] = self.of(hints.get(field.name, typing.Any))
            if field.default is not dataclasses.MISSING:
                _default(properties[field.name], field.default)
            elif field.default_factory is dataclasses.MISSING:
                required.append(field.name)
        return self._object(hint, properties, required)

    def _named_tuple(self, hint):
        hints, defaults = hints_of(hint, self.notes), hint._field_defaults
        properties = {name: self.of(hints.get(name, typing.Any)) for name in hint._fields}
        return self._object(hint, properties, [name for name in hint._fields if name not in defaults])

    def _object(self, hint, properties, required):
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        text = inspect.cleandoc(hint.__doc__ or "")
        # A dataclass without a docstring gets its signature, which says nothing new.
        if text and not text.startswith(hint.__name__ + "("):
            schema["description"] = text.split("\n\n")[0]
        if required:
            schema["required"] = required
        return schema

    def _pydantic(self, hint, write):
        def make():
            schema = dict(write(ref_template="#/$defs/{model}"))
            definitions = schema.pop("$defs", None) or schema.pop("definitions", {})
            # A model that contains itself is only a reference to its own definition.
            own = schema.get("$ref", "").rsplit("/", 1)[-1] if list(schema) == ["$ref"] else None
            for name, definition in definitions.items():
                if name == own:
                    schema = definition
                self.definitions.setdefault(name, definition)
            return schema

        return self._shared(hint, hint.__name__, make)

    def _shared(self, hint, name, make):
        """A reference to a class, which is written once; classes may contain themselves."""
        key = id(hint)
        if key not in self._names:
            # Generic models have brackets in their names, and no reference may.
            name = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")
            taken, base, number = set(self._names.values()) | set(self.definitions), name, 2
            while name in taken:
                name, number = "%s%d" % (base, number), number + 1
            self._names[key] = name
            self.definitions[name] = {}
            self.definitions[name] = make()
        return {"$ref": "#/$defs/" + self._names[key]}

    @staticmethod
    def _any_of(schemas):
        null = {"type": "null"}
        others = [schema for schema in schemas if schema != null]
        if len(others) == len(schemas):
            return others[0] if len(others) == 1 else {"anyOf": others}
        if any(not schema for schema in others):
            return {}
        if len(others) == 1 and isinstance(others[0].get("type"), str) and "enum" not in others[0]:
            return dict(others[0], type=[others[0]["type"], "null"])
        return {"anyOf": [*others, null]}


def hashable(value):
    try:
        hash(value)
        return True
    except TypeError:
        return False


def _name(hint):
    return getattr(hint, "__qualname__", None) or str(hint)


def _array(items):
    return {"type": "array", "items": items} if items else {"type": "array"}


def _enumeration(values):
    flat = []
    for value in values:
        value = value.value if isinstance(value, enum.Enum) else value
        if value is not None and not isinstance(value, (str, int, float, bool)):
            raise Unsupported("`%r` has no form in JSON" % (value,))
        flat.append(value)
    kinds = {type(value) for value in flat}
    if kinds == {str}:
        return {"type": "string", "enum": flat}
    if kinds == {int}:
        return {"type": "integer", "enum": flat}
    return {"enum": flat}


def _constrain(schema, one):
    """Applies what `Annotated` says: annotated-types, and `Field` of pydantic."""
    for name, word in BOUNDS.items():
        bound = getattr(one, name, None)
        if isinstance(bound, (int, float)) and not isinstance(bound, bool):
            schema[word] = bound
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    least, most = {
        "string": ("minLength", "maxLength"), "array": ("minItems", "maxItems"),
        "object": ("minProperties", "maxProperties"),
    }.get(kind, (None, None))
    for name, word in (("min_length", least), ("max_length", most)):
        bound = getattr(one, name, None)
        if word and isinstance(bound, int) and bound >= 0 and not (word == least and bound == 0):
            schema[word] = bound
    pattern = getattr(one, "pattern", None) or getattr(one, "regex", None)
    if isinstance(pattern, str):
        schema["pattern"] = pattern
    for name in ("description", "documentation"):
        if isinstance(getattr(one, name, None), str):
            schema["description"] = getattr(one, name)
    if isinstance(getattr(one, "examples", None), list):
        schema["examples"] = getattr(one, "examples")
    # `Field` keeps its bounds in a list.
    for inner in getattr(one, "metadata", None) or ():
        if inner is not one:
            _constrain(schema, inner)


def _default(schema, value):
    """Writes a default that has a form in JSON."""
    if isinstance(value, enum.Enum):
        value = value.value
    try:
        if json.loads(json.dumps(value, allow_nan=False)) == value:
            schema["default"] = value
    except (TypeError, ValueError, RecursionError):
        pass


def word_type(text):
    """The type a docstring names, for a parameter without a hint; `None` when it is not known."""
    text = text.strip().strip("`").lower()
    if text.endswith(" or none") or text.endswith("| none"):
        inner = word_type(text.rsplit("or none" if text.endswith("or none") else "|", 1)[0])
        return typing.Optional[inner] if inner is not None else None
    for left in ("list[", "list of ", "array of "):
        if text.startswith(left):
            inner = word_type(text[len(left):].rstrip("]").rstrip("s") if "of" in left else text[len(left):-1])
            return typing.List[inner] if inner is not None else list
    return WORDS.get(text)


def of_function(function, doc, skip, notes):
    """The schema of the parameters, and which of them are positional only, var-args and keyword maps."""
    schemas = Schemas(notes)
    signature = inspect.signature(function)
    hints = hints_of(innermost(function), notes)
    properties, required, passing, defaults, more = {}, [], {}, {}, False
    for name, parameter in signature.parameters.items():
        if name in skip:
            continue
        kind, text = doc.parameters.get(name, ("", ""))
        hint = hints.get(name, parameter.annotation)
        if hint is inspect.Parameter.empty:
            guess = word_type(kind) if kind else None
            if guess is None and parameter.default not in (inspect.Parameter.empty, None):
                guess = type(parameter.default) if type(parameter.default) in SIMPLE else None
            if guess is not None:
                notes.append("`%s` has no hint; its type is guessed from the %s" % (
                    name, "docstring" if kind and word_type(kind) is not None else "default"))
            else:
                notes.append("`%s` has no hint, so any value is accepted" % name)
            hint = typing.Any if guess is None else guess
        try:
            if parameter.kind is parameter.VAR_KEYWORD:
                more = _more(schemas, hint, properties, required)
                continue
            schema = schemas.of(hint)
        except Unsupported as error:
            if parameter.default is not inspect.Parameter.empty:
                notes.append("`%s` is not offered: %s" % (name, error))
                continue
            raise Unsupported("parameter `%s`: %s" % (name, error)) from None
        if parameter.kind is parameter.VAR_POSITIONAL:
            schema = _array(schema)
            passing[name] = "star"
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            passing[name] = "positional"
        default, fields = parameter.default, getattr(hint, "__metadata__", ())
        if callable(getattr(default, "is_required", None)) and callable(getattr(default, "get_default", None)):
            # pydantic's `Field` in the place of the default.
            if "$ref" in schema:
                schema = {"allOf": [schema]}
            _constrain(schema, default)
            default, fields = inspect.Parameter.empty, (default,)
        if default is inspect.Parameter.empty:
            # A default of `Field` is nothing to Python, so the call has to give it.
            make = next(filter(None, map(field_default, fields)), None)
            if make is not None and parameter.kind is not parameter.VAR_POSITIONAL:
                defaults[name] = make
                try:
                    default = make()
                except Exception:
                    default = None
        if text and "description" not in schema:
            if "$ref" in schema:
                schema = {"allOf": [schema]}
            schema["description"] = text
        if default is not inspect.Parameter.empty:
            _default(schema, default)
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            required.append(name)
        properties[name] = schema
    result = {"type": "object", "properties": properties, "additionalProperties": more}
    if required:
        result["required"] = required
    if schemas.definitions:
        result["$defs"] = schemas.definitions
    return result, hints, passing, defaults


def _more(schemas, hint, properties, required):
    """What `**kwargs` accepts."""
    if str(origin_of(hint)).endswith("Unpack"):
        hint = typing.get_args(hint)[0]
        hints = hints_of(hint, schemas.notes)
        twice = next((name for name in hints if name in properties), None)
        if twice is not None:
            raise Unsupported("there are two parameters `%s`" % twice)
        properties.update((name, schemas.of(one)) for name, one in hints.items())
        required.extend(name for name in hints if name in getattr(hint, "__required_keys__", ()))
        return False
    schema = schemas.of(hint)
    return schema if schema else True


def of_result(hint, notes):
    """The schema of the result; `None` when it is not an object's."""
    if hint is inspect.Parameter.empty or hint is None or hint is type(None):
        return None
    schemas = Schemas([])
    try:
        schema = schemas.of(hint)
    except Exception:
        return None
    seen = set()
    while "$ref" in schema and schema["$ref"] not in seen:
        seen.add(schema["$ref"])
        schema = dict(schemas.definitions.get(schema["$ref"].rsplit("/", 1)[-1], {}))
    if schema.get("type") != "object" or not schema.get("properties"):
        return None
    if schemas.definitions:
        schema["$defs"] = schemas.definitions
    return schema


def innermost(function):
    """The function whose annotations count: behind wrappers, partials and bound methods."""
    import functools
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif not inspect.isroutine(function) and not isinstance(function, type) and hasattr(type(function), "__call__"):
            function = type(function).__call__
            if not hasattr(function, "__annotations__"):
                return function
        else:
            return function
