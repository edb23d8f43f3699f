"""Millicores as the kernel takes them: shares (cgroup v1), weight (v2), CFS quota (pkg/kubelet/cm)."""

from __future__ import annotations

MIN_SHARES = 2
MAX_SHARES = 262144
MIN_QUOTA_US = 1000
MAX_WEIGHT = 10000


def cpu_shares(millicores: int) -> int:
    """Shares, 2 to 262144; 1024 a core."""
    return min(max(millicores * 1024 // 1000, MIN_SHARES), MAX_SHARES)


def cpu_quota(millicores: int, period_us: int) -> int | None:
    """Microseconds of CPU time in each period, at least 1000; None for no limit (0 millicores)."""
    return max(millicores * period_us // 1000, MIN_QUOTA_US) if millicores else None


def cpu_weight(shares: int) -> int:
    """cpu.weight, 1 to 10000, of shares."""
    if shares >= MAX_SHARES:
        return MAX_WEIGHT
    return 1 + (max(shares, MIN_SHARES) - MIN_SHARES) * 9999 // 262142


def shares_of_weight(weight: int) -> int:
    """Shares of a cpu.weight; the inverse of cpu_weight up to rounding."""
    return (weight - 1) * 262142 // 9999 + MIN_SHARES
