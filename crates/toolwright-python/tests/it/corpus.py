"""Functions whose schemas are compared with fastmcp's, and what arguments they are tried with."""

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import ipaddress
import pathlib
import re
import uuid
from typing import Annotated, Any, Dict, List, Literal, Mapping, NewType, Optional, Sequence, TypeVar, Union

import pydantic
from pydantic import AfterValidator, AnyUrl, BaseModel, Field, HttpUrl, SecretStr, conint


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class User(BaseModel):
    """A user."""

    name: str = Field(description="The name.", min_length=1)
    age: int = Field(ge=0, le=150, default=3)
    email: Optional[str] = None


class Nested(BaseModel):
    user: User
    friends: List[User] = []
    boss: Optional["Nested"] = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    bark: bool = True


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0
    tags: list[str] = dataclasses.field(default_factory=list)


Value = TypeVar("Value")
Id = NewType("Id", int)


def plain(a: int, b: str, c: float = 1.5, d: bool = False): pass
def optional(a: Optional[int] = None, b: int | None = None, c: Optional[str] = "x", d: int | str = 3): pass
def required_null(a: Optional[int], b: str | None): pass
def literals(a: Literal["x", "y"], b: Literal[1, 2] = 1, c: Optional[Literal["q"]] = None, d: Literal["a", 1, None] = None): pass
def enums(a: Color, b: Number = Number.ONE, c: list[Color] = []): pass
def collections_of(a: list[int], b: dict[str, int], c: set[str], d: tuple[int, str], e: tuple[int, ...], f: Sequence[str]): pass
def mappings(a: Mapping[str, list[int]], b: Dict[str, Dict[str, float]], c: dict[str, Any], d: frozenset[int] = frozenset()): pass
def bare(a: list, b: dict, c: tuple, d: set, e: Any, f: object = None): pass
def model(user: User): pass
def nested(n: Nested, users: dict[str, User]): pass
def itself(n: Nested): pass
def either(p: Annotated[Union[Cat, Dog], Field(discriminator="kind")]): pass
def bounds(a: Annotated[int, Field(ge=1, le=10, description="A.")], b: Annotated[str, Field(min_length=2, max_length=5, pattern="^[a-z]+$")] = "abc", c: Annotated[list[int], Field(min_length=1, max_length=3)] = [1], d: Annotated[float, Field(gt=0, lt=1, multiple_of=0.25)] = 0.5): pass
def texts(a: Annotated[str, "The a."], b: Annotated[Optional[int], "The b."] = None): pass
def constrained(a: conint(ge=2, le=4)): pass
def points(p: Point, q: Optional[Point] = None): pass
def dates(a: datetime.datetime, b: datetime.date, c: datetime.time): pass
def others(a: decimal.Decimal, b: uuid.UUID, c: pathlib.Path, d: bytes): pass
def addresses(a: HttpUrl, b: AnyUrl, c: ipaddress.IPv4Address, d: re.Pattern = None): pass
def secret(a: SecretStr): pass
def anything(a: Union[dict[str, Any], list[Any], str, int, float, bool, None]): pass
def variables(a: Value, b: list[Value]): pass
def keywords(*, a: int, b: str = "x"): pass
def deep(a: list[list[list[int]]], b: list[dict[str, list[Optional[int]]]]): pass
def unions(a: Union[int, list[int], dict[str, int]], b: Union[Color, int] = 3): pass
def iterables(a: collections.abc.Iterable[int], d: collections.abc.MutableMapping[str, int]): pass
def new_type(a: Id): pass
def strict(a: Annotated[int, pydantic.Strict()], b: pydantic.StrictInt, c: pydantic.PositiveInt, d: pydantic.NonNegativeFloat): pass
def members(a: Literal[Color.RED], b: Literal[True]): pass
def unwritable(a: object = object(), b: list = [], c: dict = {}, d: Point = Point(1)): pass
def default_inside(a: Annotated[int, Field(default=5)], b: int = 3): pass
def root(a: pydantic.RootModel[list[int]]): pass
async def asynchronous(a: int): pass


def fields(a: int = Field(description="A.", ge=0), b: str = Field("x"), c: list = Field(default_factory=list)) -> list:
    return [a, b, c]


def read(url: HttpUrl, n: Annotated[int, AfterValidator(lambda n: n + 1)], user: User, key: SecretStr) -> list:
    return [type(url).__name__, n, type(user).__name__, key.get_secret_value()]


VALUES = [
    None, True, False, 0, 1, 2, 3, -1, 5, 11, 151, 1.5, 0.25, "", "x", "red", "abc", "abcdef", "a", "q", "1",
    "2026-01-02", "2026-01-02T03:04:05Z", "03:04:05Z", "12345678-1234-4234-8234-123456789012", "http://a.b/",
    "1.2.3.4", [], [1], [1, 2], ["a"], [1, "a"], [None], [1, 1], ["red"], [[1]], [[[1]]], [[["a"]]], [1, 2, 3, 4],
    {}, {"a": 1}, {"a": "x"}, {"x": 1}, {"x": 1, "y": 2}, {"x": 1, "tags": ["t"]}, {"x": "t"}, {"name": "n"},
    {"name": ""}, {"name": "n", "age": 200}, {"name": "n", "email": None}, {"kind": "cat"},
    {"kind": "dog", "bark": False}, {"kind": "cow"}, {"user": {"name": "n"}},
    {"user": {"name": "n"}, "boss": {"user": {"name": ""}}}, {"a": {"name": "n"}}, {"a": [1]}, {"a": ["x"]},
    {"a": {"b": 1.0}}, [{"a": 1}], [{"a": [None]}], {"a": [None]}, [{"a": ["x"]}],
]

__all__ = [name for name, one in list(globals().items()) if callable(one) and getattr(one, "__module__", "") == __name__
           and not isinstance(one, type) and name not in ("Value", "Id")]
