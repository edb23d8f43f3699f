"""/containerLogs on a real runtime: slices, long lines, errors, following across rotations."""

from __future__ import annotations

import http.client
import re
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from integration.rig.agent import Agent
from integration.rig.manifests import pod, shell

TALK = ("i=0; while [ $i -lt 20 ]; do echo line-$i; i=$((i+1)); done; head -c 20000 /dev/zero | tr '\\0' x; echo; "
        "echo end; sleep 3600")
TICK = "i=0; while :; do echo tick-$i-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; i=$((i+1)); usleep 5000; done"


def ask(agent: Agent, query: str, container: str = "c", name: str = "lg") -> tuple[int, bytes]:
    return agent.get(f"/containerLogs/default/{agent.full_name(name)}/{container}?{query}")


def test_slices_and_errors(agent):
    """kubernetes/kubernetes#115701."""
    a = agent().start()
    a.put("lg", pod("lg", shell("c", TALK)))
    a.wait_running("lg")
    a.wait(lambda: ask(a, "tailLines=1") == (200, b"end\n"), 20, "its last line")
    ahead = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert ask(a, "limitBytes=10") == (200, b"line-0\nlin")
    assert ask(a, "tailLines=0") == (200, b"")
    assert ask(a, f"sinceTime={ahead}") == (200, b"")
    assert ask(a, "tailLines=2") == (200, b"x" * 3616 + b"\nend\n")
    stamped = ask(a, "timestamps=true&tailLines=1")[1]
    assert re.fullmatch(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(Z|[+-]\d\d:\d\d) end\n", stamped)
    for bad in ("tailLines=-1", "limitBytes=0", "sinceSeconds=0", f"sinceSeconds=5&sinceTime={ahead}"):
        assert ask(a, bad)[0] == 422, bad
    assert ask(a, "", container="nope")[0] == 404
    assert ask(a, "", name="nope")[0] == 404
    code, body = ask(a, "previous=true")
    assert code == 400
    assert f'previous terminated container "c" in pod "{a.full_name("lg")}" not found' in body.decode()
    shown = a.cli("logs", "lg", "--tail", "1")
    assert (shown.returncode, shown.stdout) == (0, "end\n")


@pytest.fixture
def ticking(agent) -> Agent:
    a: Agent = agent(config={"containerLogMaxSize": "16Ki", "containerLogMaxFiles": 3,
                             "containerLogMonitorInterval": "3s"}).start()
    a.put("tick", pod("tick", shell("c", TICK)))
    a.wait_running("tick")
    return a


def test_following_across_rotations(ticking):
    """kubernetes/kubernetes#59902: numbers only rise, none twice, and the disk holds three files at most."""
    [container] = ticking.wait_running("tick")
    folder = Path(ticking.cri.inspect(container)[0].log_path).parent
    rotated: set[str] = set()
    numbers: list[int] = []
    for line in follow(ticking, "tick"):
        numbers.append(int(line.split(b"-")[1]))
        names = sorted(entry.name for entry in folder.iterdir())
        assert len([name for name in names if not name.endswith(".tmp")]) <= 3, names
        rotated |= {name for name in names if re.fullmatch(r"0\.log\.\d{8}-\d{6}", name)}
        if len(rotated) >= 3 and any(name.endswith(".gz") for name in names):
            break
    assert all(before < after for before, after in pairwise(numbers))
    last = ticking.wait(lambda: _last_number(folder / "0.log"), 10, "a line in the newest file")
    assert last - numbers[-1] < 2000


def _last_number(log: Path) -> int:
    """The number in the last whole line; 0 while there is none, as just after a rotation."""
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    return int(whole[-1].split("-")[-2]) if whole else 0


def follow(agent: Agent, name: str, seconds: float = 60) -> Iterator[bytes]:
    """Lines as they come; an error if none comes for `seconds`."""
    context = ssl._create_unverified_context()
    client = http.client.HTTPSConnection("127.0.0.1", agent.config["port"], timeout=seconds, context=context)
    try:
        client.request("GET", f"/containerLogs/default/{agent.full_name(name)}/c?follow=true")
        answer = client.getresponse()
        while line := answer.readline():
            yield line
    finally:
        client.close()
