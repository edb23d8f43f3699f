"""The base of the frozen data that travels between processes."""

from __future__ import annotations

from typing import Any, ClassVar


class Plain:
    """Pickled by its constructor: what Python 3.11 does for frozen, slotted dataclasses takes several times longer.

    For dataclasses all of whose fields are arguments of `__init__`.
    """

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]]

    def __reduce__(self) -> tuple[type[Plain], tuple[Any, ...]]:
        return type(self), tuple([getattr(self, name) for name in self.__match_args__])
