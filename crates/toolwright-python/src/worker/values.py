"""Arguments: JSON values become what the hints of a function name."""

import base64
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import ipaddress
import pathlib
import re
import typing
import uuid

import _toolwright_schema as schema


class Misfit(ValueError):
    """An argument that does not fit its hint."""


def fit(hint, value, where):
    """The value as its hint names it. What the hint does not explain stays as it is."""
    try:
        return _fit(hint, value, where)
    except Misfit:
        raise
    except Exception as error:
        raise Misfit("%s: %s" % (where, error)) from error


def _fit(hint, value, where):
    if hint is typing.Any or hint is inspect.Parameter.empty or isinstance(hint, str):
        return value
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    read = schema.adapter(hint)
    if read is not None:
        return read.validate_python(value)
    if origin is typing.Annotated:
        return fit(arguments[0], value, where)
    if origin is not None and schema.is_union(origin):
        return _fit_one_of(arguments, value, where)
    if schema.ALIAS is not None and isinstance(hint, schema.ALIAS):
        return fit(hint.__value__, value, where)
    if hasattr(hint, "__supertype__"):
        return fit(hint.__supertype__, value, where)
    if value is None:
        return None
    if origin is typing.Literal:
        for literal in arguments:
            if isinstance(literal, enum.Enum) and literal.value == value:
                return literal
        return value
    if origin is tuple or hint is tuple:
        return _fit_tuple(arguments, value, where)
    kind = origin or hint
    if kind in schema.SEQUENCES and isinstance(value, list):
        items = _items(arguments, value, where)
        return collections.deque(items) if kind is collections.deque else items
    if kind in schema.SETS and isinstance(value, list):
        return (frozenset if kind is frozenset else set)(_items(arguments, value, where))
    if kind in schema.MAPPINGS and isinstance(value, dict):
        if len(arguments) != 2:
            return value
        return {
            fit(arguments[0], key, where): fit(arguments[1], one, "%s.%s" % (where, key))
            for key, one in value.items()
        }
    if isinstance(kind, type):
        return _fit_class(kind, value, where)
    return value


def _items(arguments, value, where):
    if not arguments:
        return value
    return [fit(arguments[0], one, "%s[%d]" % (where, at)) for at, one in enumerate(value)]


def _fit_tuple(arguments, value, where):
    if not isinstance(value, list):
        return value
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_items(arguments, value, where))
    if len(arguments) != len(value):
        return tuple(value)
    return tuple(fit(hint, one, "%s[%d]" % (where, at)) for at, (hint, one) in enumerate(zip(arguments, value)))


def _fit_one_of(arguments, value, where):
    if value is None and type(None) in arguments:
        return None
    plain = {str: str, bool: bool, int: int, float: (int, float)}
    for hint in arguments:
        if schema.hashable(hint) and hint in plain:
            if isinstance(value, plain[hint]) and not (hint in (int, float) and isinstance(value, bool)):
                return value
    problem = None
    for hint in arguments:
        if schema.hashable(hint) and hint in (type(None), str, bool, int, float):
            continue
        try:
            return fit(hint, value, where)
        except Misfit as error:
            problem = error
    if problem is not None:
        raise problem
    return value


def _fit_class(kind, value, where):
    if issubclass(kind, enum.Enum):
        return kind(value)
    if schema.is_pydantic(kind):
        return kind.model_validate(value)
    if schema.is_old_pydantic(kind):
        return kind.parse_obj(value)
    if schema.is_typed_dict(kind) and isinstance(value, dict):
        hints = schema.hints_of(kind, [])
        return {name: _field(hints, name, one, where) for name, one in value.items()}
    if (dataclasses.is_dataclass(kind) or schema.is_named_tuple(kind)) and isinstance(value, dict):
        hints = schema.hints_of(kind, [])
        return kind(**{name: _field(hints, name, one, where) for name, one in value.items()})
    if kind is bytes and isinstance(value, str):
        return base64.b64decode(value, validate=True)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is datetime.datetime and isinstance(value, str):
        return datetime.datetime.fromisoformat(_zone(value))
    if kind is datetime.date and isinstance(value, str):
        return datetime.date.fromisoformat(value)
    if kind is datetime.time and isinstance(value, str):
        return datetime.time.fromisoformat(_zone(value))
    if kind is datetime.timedelta and isinstance(value, (int, float)):
        return datetime.timedelta(seconds=value)
    if kind is decimal.Decimal and isinstance(value, (int, float, str)):
        return decimal.Decimal(str(value))
    if kind in (uuid.UUID, ipaddress.IPv4Address, ipaddress.IPv6Address) and isinstance(value, str):
        return kind(value)
    if kind is re.Pattern and isinstance(value, str):
        return re.compile(value)
    if issubclass(kind, pathlib.PurePath) and isinstance(value, str):
        return kind(value)
    return value


def _field(hints, name, value, where):
    return fit(hints.get(name, typing.Any), value, "%s.%s" % (where, name))


def _zone(text):
    """Before 3.11, Python did not read the `Z` of UTC."""
    return text[:-1] + "+00:00" if text.endswith(("Z", "z")) else text


def fit_argument(tool, name, value, how):
    """One argument of a tool; those of `*args` come as a list."""
    hint = tool.hints.get(name, typing.Any)
    if how == "star" and isinstance(value, list):
        return [fit(hint, one, "%s[%d]" % (name, at)) for at, one in enumerate(value)]
    return fit(hint, value, name)
