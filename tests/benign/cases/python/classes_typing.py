# Dataclasses, enums, protocols, descriptors, metaclasses, pattern matching.
import enum
from abc import ABC, abstractmethod
from dataclasses import astuple, dataclass, field, replace
from typing import Generic, Protocol, TypeVar, get_type_hints, runtime_checkable

T = TypeVar("T")


class Colour(enum.Flag):
    RED = enum.auto()
    GREEN = enum.auto()
    YELLOW = RED | GREEN


@dataclass(order=True, frozen=True, slots=True)
class Version:
    major: int
    minor: int = 0
    tags: tuple = field(default=(), compare=False)


class Stack(Generic[T]):
    def __init__(self):
        self.items: list[T] = []

    def push(self, item: T) -> "Stack[T]":
        self.items.append(item)
        return self


@runtime_checkable
class Sized(Protocol):
    def __len__(self) -> int: ...


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner):
        return getattr(instance, self.name)

    def __set__(self, instance, value):
        if value <= 0:
            raise ValueError(f"{self.name[1:]} must be positive")
        setattr(instance, self.name, value)


class Shape(ABC):
    size = Positive()

    def __init__(self, size):
        self.size = size

    @abstractmethod
    def area(self): ...


class Square(Shape):
    def area(self):
        return self.size ** 2


def describe(thing):
    match thing:
        case {"kind": "point", "at": [x, y]} if x == y:
            return f"diagonal {x}"
        case [first, *rest]:
            return f"{first} and {len(rest)} more"
        case Version(major=1):
            return "first"
        case str() | bytes():
            return "text"
        case _:
            return "unknown"


print(Colour.YELLOW, Colour.RED in Colour.YELLOW, sorted([Version(2), Version(1, 5), Version(1)])[0])
print(replace(Version(1), minor=9), astuple(Version(3, 1, ("x",))), hash(Version(1)) == hash(Version(1)))
print(Stack[int]().push(1).push(2).items, isinstance([], Sized), get_type_hints(Stack.push)["item"])
print([describe(t) for t in ({"kind": "point", "at": [2, 2]}, [1, 2, 3], Version(1, 2), b"", 3.5)])
print(Square(3).area(), Square.__mro__[1].__name__)
for attempt in (lambda: Square(-1), lambda: Shape(1), lambda: setattr(Version(1), "major", 2)):
    try:
        attempt()
    except Exception as error:
        print(type(error).__name__, error)
