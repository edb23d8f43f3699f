from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.cpushares import cpu_quota, cpu_shares, cpu_weight, shares_of_weight

MILLICORES = st.integers(0, 10**7)


@pytest.mark.parametrize(
    ("milli", "shares"),
    [
        (0, 2),
        (1, 2),
        (5, 5),
        (7, 7),
        (12, 12),
        (100, 102),
        (250, 256),
        (1000, 1024),
        (256_000, 262144),
        (10**6, 262144),
    ],
)
def test_shares(milli, shares):
    assert cpu_shares(milli) == shares


@pytest.mark.parametrize(
    ("milli", "period", "quota"),
    [
        (0, 100_000, None),
        (5, 100_000, 1000),
        (7, 100_000, 1000),
        (12, 100_000, 1200),
        (250, 100_000, 25_000),
        (1500, 100_000, 150_000),
        (500, 10_000, 5000),
        (1, 1000, 1000),
    ],
)
def test_quota(milli, period, quota):
    assert cpu_quota(milli, period) == quota


@pytest.mark.parametrize(
    ("shares", "weight"), [(0, 1), (2, 1), (102, 4), (1024, 39), (262144, 10000), (10**6, 10000)]
)
def test_weight(shares, weight):
    assert cpu_weight(shares) == weight


@pytest.mark.parametrize(("weight", "shares"), [(1, 2), (39, 998), (10000, 262144)])
def test_shares_of_weight(weight, shares):
    assert shares_of_weight(weight) == shares


@given(MILLICORES, MILLICORES)
def test_more_millicores_never_mean_less_of_anything(one, other):
    less, more = sorted((one, other))
    assert 2 <= cpu_shares(less) <= cpu_shares(more) <= 262144
    assert 1 <= cpu_weight(cpu_shares(less)) <= cpu_weight(cpu_shares(more)) <= 10000
    if less:
        assert 1000 <= cpu_quota(less, 100_000) <= cpu_quota(more, 100_000)


@given(st.integers(1, 10000))
def test_weight_survives_the_way_back_and_forth(weight):
    assert abs(cpu_weight(shares_of_weight(weight)) - weight) <= 1
