"""Results: what a function returns becomes text, JSON and pictures."""

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import io
import math
import pathlib
import uuid

MAX_DEPTH = 64
MAX_VALUES = 2_000_000
# The most characters of text and bytes of pictures; more does not fit into a frame.
MAX_SIZE = 64 << 20
MAX_ROWS = 50
MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"),
)


class Unwritable(TypeError):
    """A result that has no form in JSON."""


class Picture:
    def __init__(self, mime, data):
        self.mime = mime
        self.data = bytes(data)


class Result:
    """The blocks of a result and the bytes of its pictures."""

    def __init__(self):
        self.blocks = []
        self.attachments = []
        self._values = 0
        self._size = 0

    def sized(self, value):
        """A text or the bytes of a picture, while all together are not too large. Copies are made of them, so
        a large one is refused before memory is."""
        self._size += len(value)
        if self._size > MAX_SIZE:
            raise Unwritable("the result is too large: more than %d characters or bytes" % MAX_SIZE)
        return value

    def add_text(self, text):
        self.sized(text)
        self.blocks.append({"type": "text", "text": text})

    def add_picture(self, picture):
        self.sized(picture.data)
        self.blocks.append({"type": "image", "mime": picture.mime, "at": len(self.attachments)})
        self.attachments.append(picture.data)

    def plain(self, value, where, depth, pictures):
        """The value as JSON. Pictures are taken out, with a note in their place."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise Unwritable("the result has more than %d values" % MAX_VALUES)
        if depth > MAX_DEPTH:
            raise Unwritable("the result is nested more than %d levels deep, at %s" % (MAX_DEPTH, where))
        if value is None or type(value) is bool:
            return value
        if type(value) is str:
            return self.sized(value)
        if isinstance(value, enum.Enum):
            return self.plain(value.value, where, depth + 1, pictures)
        if isinstance(value, bool):
            return bool(value)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(value)
        if isinstance(value, str):
            return self.sized(str(value))
        picture = picture_of(value)
        if picture is not None:
            pictures.append(picture)
            return "[image %d]" % len(pictures)
        if isinstance(value, (bytes, bytearray, memoryview)):
            try:
                return bytes(self.sized(value)).decode("utf-8")
            except UnicodeDecodeError:
                raise Unwritable("the bytes at %s are neither UTF-8 text nor a picture" % where) from None
        simple = plain_of(value)
        if simple is not NotImplemented:
            return self.plain(simple, where, depth + 1, pictures)
        if isinstance(value, collections.abc.Mapping):
            return {
                key_of(key, where): self.plain(one, "%s.%s" % (where, key), depth + 1, pictures)
                for key, one in value.items()
            }
        if isinstance(value, (list, tuple, set, frozenset, collections.abc.Iterable)):
            return [
                self.plain(one, "%s[%d]" % (where, at), depth + 1, pictures) for at, one in enumerate(value)
            ]
        raise Unwritable("%s at %s has no form in JSON" % (type(value).__qualname__, where))


def write(value):
    """The frame of a result: blocks, a structured value where it is one, and the bytes of pictures."""
    result = Result()
    if isinstance(value, str):
        result.add_text(str(value))
        return {"blocks": result.blocks}, ()
    picture = picture_of(value)
    if picture is not None:
        result.add_picture(picture)
        return {"blocks": result.blocks}, result.attachments
    parts = parts_of(value)
    if parts is not None:
        for part in parts:
            if isinstance(part, Picture):
                result.add_picture(part)
            else:
                result.add_text(part)
        return {"blocks": result.blocks}, result.attachments
    pictures = []
    structured = result.plain(value, "result", 0, pictures)
    for picture in pictures:
        result.add_picture(picture)
    if isinstance(structured, str):
        result.blocks.insert(0, {"type": "text", "text": structured})
        return {"blocks": result.blocks}, result.attachments
    return {"blocks": result.blocks, "value": structured, "has_value": True}, result.attachments


def parts_of(value):
    """The texts and pictures of a list that holds nothing else, and at least one picture or content block."""
    if not isinstance(value, (list, tuple)) or not value or len(value) > 1000:
        return None
    parts, special = [], False
    for one in value:
        picture = picture_of(one)
        if picture is not None:
            parts.append(picture)
            special = True
        elif isinstance(one, str):
            parts.append(str(one))
        elif getattr(one, "type", None) == "text" and isinstance(getattr(one, "text", None), str):
            parts.append(one.text)
            special = True
        else:
            return None
    return parts if special else None


def picture_of(value):
    """A picture, in the forms libraries have for it."""
    if isinstance(value, Picture):
        return value
    if isinstance(value, (bytes, bytearray)):
        for magic, mime in MAGIC:
            if value.startswith(magic):
                return Picture(mime, value)
        if value[:4] == b"RIFF" and value[8:12] == b"WEBP":
            return Picture("image/webp", value)
        return None
    kind, module = type(value), type(value).__module__ or ""
    if module.split(".")[0] == "PIL" and hasattr(value, "save"):
        buffer = io.BytesIO()
        value.save(buffer, format="PNG")
        return Picture("image/png", buffer.getvalue())
    if module.startswith("matplotlib.figure"):
        buffer = io.BytesIO()
        value.savefig(buffer, format="png", bbox_inches="tight")
        return Picture("image/png", buffer.getvalue())
    if kind.__name__ == "Image" and hasattr(value, "data") and hasattr(value, "path"):
        # Of fastmcp and MCP's own library.
        data = value.data if value.data is not None else pathlib.Path(value.path).read_bytes()
        mime = getattr(value, "_mime_type", None) or (picture_of(data) or Picture("image/png", b"")).mime
        return Picture(mime, data)
    if getattr(value, "type", None) == "image" and isinstance(getattr(value, "image", None), str):
        return _from_text(value.image)
    if getattr(value, "type", None) == "image" and isinstance(getattr(value, "data", None), str):
        import base64
        return Picture(getattr(value, "mimeType", "image/png"), base64.b64decode(value.data))
    return None


def _from_text(text):
    """A data URL or a path, as Inspect's `ContentImage` holds it."""
    import base64
    if text.startswith("data:"):
        head, _, data = text.partition(",")
        return Picture(head[5:].split(";")[0] or "image/png", base64.b64decode(data))
    if "://" in text:
        return None
    return picture_of(pathlib.Path(text).read_bytes())


def plain_of(value):
    """A simpler value for one of a known class; `NotImplemented` for others."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "_asdict") and isinstance(value, tuple):
        return value._asdict()
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return value.model_dump(mode="json")
    if hasattr(type(value), "__attrs_attrs__"):
        return {one.name: getattr(value, one.name) for one in type(value).__attrs_attrs__}
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (decimal.Decimal, uuid.UUID, pathlib.PurePath, complex)):
        return str(value)
    if isinstance(value, BaseException):
        return "%s: %s" % (type(value).__name__, value)
    module = (type(value).__module__ or "").split(".")[0]
    if module == "pandas" and hasattr(value, "to_json") and hasattr(value, "shape"):
        return _frame(value)
    if module == "numpy":
        return value.tolist()
    if hasattr(value, "to_dict") and module == "polars":
        return {"shape": list(value.shape), "rows": value.head(MAX_ROWS).to_dicts()}
    return NotImplemented


def _frame(value):
    import json
    if len(value.shape) == 1:
        return json.loads(value.to_json(date_format="iso"))
    rows = json.loads(value.head(MAX_ROWS).to_json(orient="records", date_format="iso"))
    return {"shape": list(value.shape), "columns": [str(name) for name in value.columns], "rows": rows}


def key_of(key, where):
    if isinstance(key, str):
        return str(key)
    if isinstance(key, enum.Enum):
        return key_of(key.value, where)
    if key is None or isinstance(key, (bool, int, float)):
        return str(key)
    if isinstance(key, (tuple, datetime.date, uuid.UUID, pathlib.PurePath)):
        return str(key)
    raise Unwritable("a key of %s is %s, which has no form in JSON" % (where, type(key).__qualname__))
