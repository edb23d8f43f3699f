"""Kubernetes quantities ("100m", "64Mi", "1e3"), exact.

Amounts are kept as whole nano-units, the finest that the API allows; more precise input is rounded away
from zero and magnitudes are capped at 2^63-1, as in k8s.io/apimachinery/pkg/api/resource.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import total_ordering
from typing import Literal

Form = Literal["BinarySI", "DecimalSI", "DecimalExponent"]

NANO = 10**9
_CAP = (2**63 - 1) * NANO
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIX_OF = {power: suffix for suffix, power in _DECIMAL.items()}
_TEXT = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]?|[eE][+-]?\d{1,3})", re.ASCII)


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An amount in nano-units and the family of suffixes that it is written with.

    Two quantities are equal when their amounts are; the form only matters for str().
    """

    nano: int
    form: Form = "DecimalSI"

    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _away(self.nano, NANO)

    def milli_value(self) -> int:
        """Thousandths, rounded away from zero."""
        return _away(self.nano, NANO // 1000)

    def divided_up(self, divisor: Quantity) -> int:
        """How many times the divisor, rounded up (the downward API's resourceFieldRef)."""
        return -(-self.nano // divisor.nano)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self.form if self.nano else other.form)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.form if self.nano else other.form)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.form)

    def __bool__(self) -> bool:
        return self.nano != 0

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __str__(self) -> str:
        """The canonical text: no fraction, the largest suffix that keeps the number whole."""
        if self.nano == 0:
            return "0"
        if self.form == "BinarySI" and abs(self.nano) >= 1024 * NANO and self.nano % NANO == 0:
            return _binary_text(self.nano // NANO)
        return _decimal_text(self.nano, self.form)


ZERO = Quantity(0)


def parse(text: str | int | float) -> Quantity:
    """The quantity of a text, or of a bare number as JSON allows it. Raises ValueError."""
    if isinstance(text, bool):
        raise ValueError(f"{text!r} is not a quantity")
    match = _TEXT.fullmatch(str(text))
    if not match:
        raise ValueError(f"{text!r} is not a quantity; write it like 100m, 64Mi or 2")
    sign, number, suffix = match.groups()
    form, factor = _factor(suffix)
    exact = Fraction(number) * factor * NANO
    nano = min(-(-exact.numerator // exact.denominator), _CAP)
    if form == "BinarySI" and nano < NANO:
        form = "DecimalSI"
    return Quantity(-nano if sign == "-" else nano, form)


def from_value(units: int, form: Form = "DecimalSI") -> Quantity:
    """A quantity of whole units."""
    return Quantity(units * NANO, form)


def from_milli(milli: int, form: Form = "DecimalSI") -> Quantity:
    """A quantity of thousandths."""
    return Quantity(milli * (NANO // 1000), form)


def value(text: str | int | float) -> int:
    """Whole units of a text (bytes of memory, count of pods), rounded up. Raises ValueError."""
    return parse(text).value()


def milli_value(text: str | int | float) -> int:
    """Thousandths of a text (millicores), rounded up. Raises ValueError."""
    return parse(text).milli_value()


def canonical(text: str | int | float) -> str:
    """The canonical text of a text, e.g. "0.5" → "500m", "2048Ki" → "2Mi". Raises ValueError."""
    return str(parse(text))


def _factor(suffix: str) -> tuple[Form, Fraction]:
    if suffix in _BINARY:
        return "BinarySI", Fraction(2 ** _BINARY[suffix])
    if suffix in _DECIMAL:
        return "DecimalSI", Fraction(10) ** _DECIMAL[suffix]
    return "DecimalExponent", Fraction(10) ** int(suffix[1:])


def _away(amount: int, unit: int) -> int:
    return -(-amount // unit) if amount > 0 else amount // unit


def _binary_text(units: int) -> str:
    suffix = ""
    for name in _BINARY:
        if units % 1024:
            break
        units, suffix = units // 1024, name
    return f"{units}{suffix}"


def _decimal_text(nano: int, form: Form) -> str:
    power = -9
    while nano % 1000 == 0 and (power < 18 or form == "DecimalExponent"):
        nano, power = nano // 1000, power + 3
    if form == "DecimalExponent":
        return f"{nano}e{power}" if power else str(nano)
    return f"{nano}{_SUFFIX_OF[power]}"
