"""Quantities: canonical texts as Kubernetes writes them, exact arithmetic, rounding up."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model import quantity
from kubelet_mp.model.quantity import NANO, Quantity

amounts = st.integers(-(2**63 - 1) * NANO, (2**63 - 1) * NANO)
forms = st.sampled_from(["BinarySI", "DecimalSI", "DecimalExponent"])


@pytest.mark.parametrize(
    ("text", "canonical", "value", "milli"),
    [
        ("0", "0", 0, 0),
        ("0Mi", "0", 0, 0),
        ("100m", "100m", 1, 100),
        ("0.5", "500m", 1, 500),
        ("1.5", "1500m", 2, 1500),
        ("2", "2", 2, 2000),
        ("12000", "12k", 12000, 12_000_000),
        ("64Mi", "64Mi", 67108864, 67108864000),
        ("2048Ki", "2Mi", 2097152, 2097152000),
        ("0.5Mi", "512Ki", 524288, 524288000),
        ("1000Ki", "1000Ki", 1024000, 1024000000),
        ("512Ki", "512Ki", 524288, 524288000),
        ("0.1Ki", "102400m", 103, 102400),
        ("1e3", "1e3", 1000, 1_000_000),
        ("1E", "1E", 10**18, 10**21),
        ("12E2", "1200", 1200, 1_200_000),
        ("-1.5", "-1500m", -2, -1500),
        ("1n", "1n", 1, 1),
        ("0.1n", "1n", 1, 1),
        ("+5", "5", 5, 5000),
        (".5", "500m", 1, 500),
        ("5.", "5", 5, 5000),
    ],
)
def test_known_texts(text: str, canonical: str, value: int, milli: int) -> None:
    found = quantity.parse(text)
    assert (str(found), found.value(), found.milli_value()) == (canonical, value, milli)


@pytest.mark.parametrize("text", ["", "m", "1 Mi", "1mi", "1KI", "0x1", "1e", "--1", "1.2.3", "١", "10%", True])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantity"):
        quantity.parse(text)


def test_numbers_as_json_allows_them() -> None:
    assert quantity.parse(2) == quantity.parse("2")
    assert quantity.parse(0.5) == quantity.parse("500m")


def test_too_much_is_capped() -> None:
    assert quantity.parse("100E").value() == 2**63 - 1
    assert quantity.parse("-1e999").value() == -(2**63 - 1)


@given(amounts, forms)
def test_the_text_of_a_quantity_gives_it_back(nano: int, form: quantity.Form) -> None:
    assert quantity.parse(str(Quantity(nano, form))) == Quantity(nano)


@given(amounts, forms)
def test_the_canonical_text_is_stable(nano: int, form: quantity.Form) -> None:
    text = quantity.canonical(str(Quantity(nano, form)))
    assert quantity.canonical(text) == text


@given(amounts)
def test_rounding_goes_away_from_zero_and_by_less_than_one(nano: int) -> None:
    exact, value = Fraction(nano, NANO), Quantity(nano).value()
    assert abs(value) >= abs(exact) > abs(value) - 1 or (value, exact) == (0, 0)


@given(st.integers(0, 10**30), st.integers(1, 10**21))
def test_division_rounds_up(amount: int, divisor: int) -> None:
    found = Quantity(amount).divided_up(Quantity(divisor))
    assert (found - 1) * divisor < amount <= found * divisor


@given(amounts, amounts)
def test_arithmetic_and_order_follow_the_amounts(one: int, two: int) -> None:
    left, right = Quantity(one), Quantity(two, "BinarySI")
    assert (left + right).nano == one + two
    assert (left - right).nano == one - two
    assert (left < right, left == right, bool(left)) == (one < two, one == two, one != 0)


def test_downward_api_examples() -> None:
    cpu, memory = quantity.parse("250m"), quantity.parse("32Mi")
    assert cpu.divided_up(quantity.parse("1")) == 1
    assert cpu.divided_up(quantity.parse("1m")) == 250
    assert memory.divided_up(quantity.parse("1Gi")) == 1
    assert quantity.from_milli(1500).value() == 2
    assert str(quantity.from_value(1024, "BinarySI")) == "1Ki"
    assert (quantity.value("1Ki"), quantity.milli_value("2")) == (1024, 2000)
    assert str(-quantity.parse("1Gi")) == "-1Gi"
