"""Evaluates expressions with CPython, one per line, and answers one line each.

A request is JSON text holding the expression. The answer is `ok` and the value in a canonical form, or `err`
and the class of the exception. Built-ins are the ones the language has; an attribute of a dict is its key
first, as there.
"""

import ast
import builtins
import json
import resource
import sys
import warnings

warnings.simplefilter("ignore")

NAMES = """abs all any bin bool bytes callable chr complex dict divmod enumerate filter float format frozenset hex
int isinstance issubclass len list map max min oct ord pow range repr reversed round set slice sorted str sum tuple
type zip ValueError KeyError TypeError""".split()

VARIABLES = compile(
    """{
    'a': 7, 'b': -3, 'z': 0, 'f': 2.5, 'g': -0.75, 'big': 10**20, 'yes': True, 'n': None,
    's': 'Hello, World', 'u': 'ünï ✓😀', 'e': '', 'w': ' pad\\t', 'num': '42',
    'l': [3, 1, 2], 'm': [[1, 2], [3, 4]], 'o': [], 't': (1, 'x', 2.5), 'r': range(5),
    'd': {'a': 1, 'b': {'c': [1, 2, {'e': 'deep'}]}, 'k': None, 'items': 'KEY'}, 'p': {},
    'st': {1, 2, 3}, 'by': b'ab\\x00',
}""",
    "variables",
    "eval",
)


def attribute(value, name):
    if isinstance(value, dict) and name in value:
        return value[name]
    return getattr(value, name)


def print_json(value, pretty=False):
    def plain(value):
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        if isinstance(value, (int, float, str, bool, type(None))):
            return value
        return str(value)

    return json.dumps(plain(value), ensure_ascii=False, indent=2 if pretty else None)


class Attributes(ast.NodeTransformer):
    """Sends attributes through `attribute`."""

    def visit_Attribute(self, node):
        self.generic_visit(node)
        call = ast.Call(ast.Name("_attribute", ast.Load()), [node.value, ast.Constant(node.attr)], [])
        return ast.copy_location(ast.fix_missing_locations(call), node)


def canonical(value):
    kind = type(value)
    if kind in (int, float, bool, str, bytes, complex, range, slice, type(None), type(...)):
        return f"{kind.__name__}:{value!r}"
    if kind is list:
        return "[" + ",".join(map(canonical, value)) + "]"
    if kind is tuple:
        return "(" + ",".join(map(canonical, value)) + ")"
    if kind is dict:
        return "{" + ",".join(canonical(key) + "=" + canonical(item) for key, item in value.items()) + "}"
    if kind in (set, frozenset):
        return kind.__name__ + "{" + ",".join(sorted(map(canonical, value))) + "}"
    if kind is type:
        return f"type:{value.__name__}"
    if kind.__name__ in ("dict_keys", "dict_values", "dict_items"):
        return kind.__name__ + "[" + ",".join(map(canonical, value)) + "]"
    return f"other:{kind.__name__}"


def answer(source, scope):
    scope = dict(scope)
    scope.update(eval(VARIABLES))
    try:
        tree = ast.parse(source, mode="eval")
        if "." in source:
            tree = Attributes().visit(tree)
        value = eval(compile(tree, "expression", "eval"), scope)
        return "ok " + canonical(value)
    except RecursionError:
        raise
    except Exception as error:
        return "err " + type(error).__name__


def main():
    # An expression that runs away here reaches a limit there; neither may take the machine along.
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    scope = {"__builtins__": {name: getattr(builtins, name) for name in NAMES}}
    scope.update(_attribute=attribute, print_json=print_json)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), scope)), flush=False)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
