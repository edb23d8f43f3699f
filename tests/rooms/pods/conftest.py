"""What most tests of this room start from; those with an API server make a world of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.cri import FakeCRI
from tests.rooms.pods.harness import IMAGE, World


@pytest.fixture
def fake() -> Iterator[FakeCRI]:
    with FakeCRI(images=(IMAGE,)) as server:
        yield server


@pytest.fixture
def world(fake: FakeCRI, tmp_path: Path) -> Iterator[World]:
    with World(fake, tmp_path) as made:
        yield made
