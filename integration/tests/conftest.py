"""Fixtures: private runtimes for the session, agents on them for a test, a check that nothing stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.rig import layout
from integration.rig.agent import Agent
from integration.rig.layout import Binaries, Layout
from integration.rig.runtime import Runtime, reserved, start

AgentFactory = Callable[..., Agent]

_AGENTS = pytest.StashKey[list[Agent]]()


def _session_runtime(place: Layout, bins: Binaries) -> Iterator[Runtime]:
    with reserved(place):
        Runtime(place, bins).stop()  # what an earlier run may have left when it was killed
        runtime = start(place, bins)
        yield runtime
        left = runtime.stop()
        if left:
            pytest.fail("left on the machine (and removed now):\n" + "\n".join(left), pytrace=False)


@pytest.fixture(scope="session")
def runtime() -> Iterator[Runtime]:
    """containerd 2, as integration/go.mod pins it."""
    yield from _session_runtime(layout.tests(), layout.built_binaries())


@pytest.fixture(scope="session")
def debian_runtime() -> Iterator[Runtime]:
    """Debian's own containerd, which has no container events."""
    yield from _session_runtime(layout.debian_tests(), layout.debian_binaries())


@pytest.fixture(scope="session")
def second_runtime() -> Iterator[Runtime]:
    """A second containerd 2, for a second node."""
    yield from _session_runtime(layout.second_node(), layout.built_binaries())


@pytest.fixture
def agent(request: pytest.FixtureRequest) -> Iterator[AgentFactory]:
    """Make an agent: `agent(config={…}, flags=[…], node=…, runtime=…)`; it is not started yet.

    Without `runtime` it runs on the session's containerd 2. All are stopped and cleaned after the test.
    `kind` is another class with the same interface.
    """
    made: list[Agent] = request.node.stash.setdefault(_AGENTS, [])

    def make(runtime: Runtime | None = None, *, kind: type[Agent] = Agent, **options: Any) -> Agent:
        where: Runtime = runtime or request.getfixturevalue("runtime")
        home = where.layout.data / "agents" / f"{_word(request.node.name)}-{len(made)}"
        made.append(kind(where, home, **options))
        return made[-1]

    yield make
    for one in made:
        one.end()  # all of them first: one would start again what the cleaning of another removes
    left = []
    for one in made:
        one.runtime.start_daemon()  # a test may have stopped it
        left += one.clean()
    if left:
        pytest.fail("the agent left behind:\n" + "\n".join(left), pytrace=False)


@pytest.fixture
def manifests() -> Path:
    """The folder with the manifests that the tests share."""
    return Path(__file__).parent / "manifests"


def _word(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.removeprefix("test_").lower()).strip("-")[:40]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Show the agents' logs with a failed test."""
    report = yield
    if report.when == "call" and report.failed:
        for one in item.stash.get(_AGENTS, []):
            report.sections.append((f"log of {one.home.name}", one.log_tail(12000)))
    return report
