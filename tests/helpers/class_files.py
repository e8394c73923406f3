"""What compiled classes refer to, and whether the jars of an installation contain it."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# By tag, the number of bytes that follow it in a constant pool; a text (1) carries its own length.
_SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
_TEXT, _CLASS, _FIELD, _METHOD, _INTERFACE_METHOD, _WIDE = 1, 7, 9, 10, 11, (5, 6)
_IS_INTERFACE = 0x0200


@dataclass(frozen=True, order=True)
class Reference:
    """A class, or a member of one; `type` is the JVM's descriptor.

    `in_interface` is None except for methods: the JVM calls methods of interfaces in another way.
    """

    owner: str
    name: str = ""
    type: str = ""
    in_interface: bool | None = None

    def __str__(self) -> str:
        return f"{self.owner}.{self.name}{self.type}" if self.name else self.owner


@dataclass(frozen=True)
class ClassFile:
    name: str
    is_interface: bool
    parents: tuple[str, ...]
    members: frozenset[tuple[str, str]]
    references: frozenset[Reference]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def short(self) -> int:
        return int(struct.unpack(">H", self.take(2))[0])

    def int(self) -> int:
        return int(struct.unpack(">I", self.take(4))[0])


def parse(data: bytes) -> ClassFile:
    reader = _Reader(data)
    reader.take(8)
    pool = dict(_constants(reader))

    def text(index: int) -> str:
        return pool[index][1].decode("utf-8", "replace")

    def class_at(index: int) -> str:
        return text(_shorts(pool[index][1])[0])

    flags, own, parent = reader.short(), reader.short(), reader.short()
    interfaces = [class_at(reader.short()) for _ in range(reader.short())]
    members = set()
    for _ in ("fields", "methods"):
        for _ in range(reader.short()):
            reader.take(2)
            members.add((text(reader.short()), text(reader.short())))
            for _ in range(reader.short()):
                reader.take(2)
                reader.take(reader.int())
    references = set()
    for tag, value in pool.values():
        if tag == _CLASS:
            references.add(Reference(text(_shorts(value)[0])))
        elif tag in {_FIELD, _METHOD, _INTERFACE_METHOD}:
            owner, signature = _shorts(value)
            name, kind = _shorts(pool[signature][1])
            in_interface = None if tag == _FIELD else tag == _INTERFACE_METHOD
            references.add(Reference(class_at(owner), text(name), text(kind), in_interface))
    parents = ([class_at(parent)] if parent else []) + interfaces
    is_interface = bool(flags & _IS_INTERFACE)
    return ClassFile(class_at(own), is_interface, tuple(parents), frozenset(members), frozenset(references))


def _constants(reader: _Reader) -> Iterator[tuple[int, tuple[int, bytes]]]:
    count, index = reader.short(), 1
    while index < count:
        tag = reader.take(1)[0]
        yield index, (tag, reader.take(reader.short() if tag == _TEXT else _SIZES[tag]))
        index += 2 if tag in _WIDE else 1


def _shorts(value: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(value) // 2}H", value)


def references_of(jar: Path, *, to: tuple[str, ...]) -> set[Reference]:
    """Everything in packages with these prefixes that the classes of a jar refer to."""
    with zipfile.ZipFile(jar) as archive:
        classes = [parse(archive.read(name)) for name in archive.namelist() if name.endswith(".class")]
    return {one for found in classes for one in found.references if one.owner.startswith(to)}


class ClassPath:
    """The classes of some jars; `names_in_jdk` are the names of all members of a class that is in none of them."""

    def __init__(self, jars: Iterable[Path], names_in_jdk: Callable[[str], set[str]]) -> None:
        self._archives = [zipfile.ZipFile(jar) for jar in jars]
        self._where = {name: archive for archive in self._archives for name in archive.namelist()}
        self._names_in_jdk = cache(names_in_jdk)
        self.find = cache(self._find)

    def close(self) -> None:
        for archive in self._archives:
            archive.close()

    def _find(self, name: str) -> ClassFile | None:
        archive = self._where.get(f"{name}.class")
        return parse(archive.read(f"{name}.class")) if archive else None

    def has(self, reference: Reference) -> bool:
        found = self.find(reference.owner)
        if found is None:
            return False
        if not reference.name:
            return True
        is_called_rightly = reference.in_interface in {None, found.is_interface}
        return is_called_rightly and self._has_member(found.name, (reference.name, reference.type))

    def _has_member(self, owner: str, member: tuple[str, str]) -> bool:
        found = self.find(owner)
        if found is None:
            return member[0] in self._names_in_jdk(owner)
        return member in found.members or any(self._has_member(parent, member) for parent in found.parents)
