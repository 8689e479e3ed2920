"""Reads docstrings of the four common styles: Google, NumPy, Sphinx and Epydoc."""

import inspect
import re

ARGUMENTS = {
    "args", "arguments", "parameters", "params", "parameter", "keyword args", "keyword arguments",
    "other parameters", "kwargs",
}
RETURNS = {"returns", "return", "yields", "yield"}
ERRORS = {"raises", "raise", "except", "exceptions", "warns"}

FIELD = re.compile(r"^[:@](\w+)(?:[ \t]+([^:]*?))?[ \t]*:(?:[ \t]+|$)(.*)$")
PARAMETER_FIELDS = {"param", "parameter", "arg", "argument", "arguments", "key", "keyword", "kwarg"}
GOOGLE_ITEM = re.compile(r"^(\*{0,2}[\w.]+)\s*(?:\((.*?)\))?\s*(?::|\s-\s|\s–\s)\s*(.*)$")
NUMPY_ITEM = re.compile(r"^(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::\s*(.*))?$")


class Docstring:
    """What a docstring says: the text for the model, parameters by name, and the result."""

    def __init__(self):
        self.description = ""
        self.parameters = {}
        self.returns = ""

    def add(self, name, kind, text):
        name = name.lstrip("*").strip()
        if name:
            old_kind, old_text = self.parameters.get(name, ("", ""))
            self.parameters[name] = (kind or old_kind, text or old_text)


def read(text):
    """Reads a docstring; one of no known style is all description."""
    found = Docstring()
    if not text:
        return found
    lines = _indented(inspect.cleandoc(text).splitlines())
    if any(_is_field(line) for line in lines):
        _fields(found, lines)
    else:
        _sections(found, lines)
    return found


def _indented(lines):
    """The lines of a docstring whose first line is a heading. Cleaning takes the indentation of all others as
    that of the docstring, so the items of that section have lost theirs."""
    following = next((line for line in lines[1:] if line.strip()), "")
    word = lines[0].strip().rstrip(":").lower() if lines else ""
    if word not in ARGUMENTS or following[:1].isspace() or not re.match(r"\*{0,2}\w[^:]*:", following):
        return lines
    end = next((at for at in range(1, len(lines)) if _heading(lines, at)[0] is not None), len(lines))
    return [lines[0], *("    " + line for line in lines[1:end]), *lines[end:]]


def _is_field(line):
    match = FIELD.match(line.strip())
    known = PARAMETER_FIELDS | {"type", "return", "returns", "rtype", "raises", "raise", "yields"}
    return bool(match) and match.group(1).lower() in known


def _fields(found, lines):
    description, current, entries = [], None, []
    for line in lines:
        match = FIELD.match(line.strip()) if _is_field(line) else None
        if match:
            current = [match.group(1).lower(), (match.group(2) or "").strip(), [match.group(3)]]
            entries.append(current)
        elif current is None:
            description.append(line)
        else:
            current[2].append(line)
    found.description = "\n".join(description).strip()
    for word, argument, parts in entries:
        text = _joined(parts)
        if word in PARAMETER_FIELDS and argument:
            kind, _, name = argument.rpartition(" ")
            found.add(name, kind.strip(), text)
        elif word == "type" and argument:
            found.add(argument, text, "")
        elif word in ("return", "returns", "yields"):
            found.returns = text


def _sections(found, lines):
    description, at = [], 0
    while at < len(lines):
        title, style = _heading(lines, at)
        if title is None:
            description.append(lines[at])
            at += 1
            continue
        at += 1 if style == "google" else 2
        start = at
        while at < len(lines) and _heading(lines, at)[0] is None:
            # A Google section ends at the first line that is not indented.
            if style == "google" and lines[at].strip() and not lines[at][0].isspace():
                break
            at += 1
        body = lines[start:at]
        if title in ARGUMENTS:
            (_google_items if style == "google" else _numpy_items)(found, body)
        elif title in RETURNS:
            found.returns = _joined(body)
    found.description = "\n".join(description).strip()


def _heading(lines, at):
    """The section that begins in this line, in lower case, and its style."""
    line = lines[at]
    word = line.strip().rstrip(":").lower()
    if word not in ARGUMENTS | RETURNS | ERRORS:
        return None, None
    following = lines[at + 1] if at + 1 < len(lines) else ""
    if re.fullmatch(r"\s*-{3,}\s*|\s*={3,}\s*", following):
        return word, "numpy"
    if line.strip().endswith(":") and not line[:1].isspace():
        return word, "google"
    return None, None


def _google_items(found, body):
    used = [line for line in body if line.strip()]
    if not used:
        return
    indent = min(len(line) - len(line.lstrip()) for line in used)
    entries = []
    for line in body:
        own = len(line) - len(line.lstrip())
        match = GOOGLE_ITEM.match(line.strip()) if line.strip() and own == indent else None
        if match:
            kind = re.sub(r",?\s*optional$", "", match.group(2) or "")
            entries.append((match.group(1), kind, [match.group(3)]))
        elif entries:
            entries[-1][2].append(line)
    for name, kind, parts in entries:
        found.add(name, kind, _joined(parts))


def _numpy_items(found, body):
    used = [line for line in body if line.strip()]
    if not used:
        return
    indent = min(len(line) - len(line.lstrip()) for line in used)
    entries = []
    for line in body:
        own = len(line) - len(line.lstrip())
        match = NUMPY_ITEM.match(line.strip()) if line.strip() and own == indent else None
        if match:
            kind = re.sub(r",?\s*(optional|default\b.*)$", "", match.group(2) or "")
            entries.append((match.group(1), kind.strip(), []))
        elif entries:
            entries[-1][2].append(line)
    for names, kind, parts in entries:
        for name in names.split(","):
            found.add(name, kind, _joined(parts))


def _joined(parts):
    """Lines as flowing text; empty lines separate paragraphs."""
    paragraphs, current = [], []
    for part in parts:
        if part.strip():
            current.append(part.strip())
        elif current:
            paragraphs.append(" ".join(current))
            current = []
    if current:
        paragraphs.append(" ".join(current))
    return "\n".join(paragraphs)
