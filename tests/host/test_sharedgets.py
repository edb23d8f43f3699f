import threading
from typing import Any

import pytest

from kubelet_mp.errors import ApiError
from kubelet_mp.host.sharedgets import SharedGets
from tests.support import FakeClock, wait_until


class Server:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go = threading.Event()
        self.go.set()
        self.error: ApiError | None = None

    def get(self, path: str) -> dict[str, Any]:
        self.asked.append(path)
        self.go.wait(10)
        if self.error is not None:
            raise self.error
        return {"n": len(self.asked), "more": 1}


def test_a_burst_makes_one_request_and_all_get_its_answer():
    server, found = Server(), []
    gets = SharedGets(server.get, FakeClock().monotonic, slim=lambda o: {"n": o["n"]})
    server.go.clear()
    threads = [threading.Thread(target=lambda: found.append(gets.get("/a", 2.0))) for _ in range(20)]
    for thread in threads:
        thread.start()
    wait_until(lambda: server.asked)
    server.go.set()
    for thread in threads:
        thread.join(5)
    assert server.asked == ["/a"] and found == [{"n": 1}] * 20


def test_answers_age_and_are_forgotten():
    server, clock = Server(), FakeClock()
    gets = SharedGets(server.get, clock.monotonic, keep=3.0)
    assert [gets.get("/a", 2.0)["n"] for _ in range(2)] == [1, 1]  # type: ignore[index]
    clock.advance(1.9)
    gets.get("/a", 2.0)
    assert len(server.asked) == 1
    clock.advance(0.2)
    gets.get("/a", 2.0)
    assert len(server.asked) == 2
    gets.forget(["/a"])
    gets.get("/a", 2.0)
    assert len(server.asked) == 3
    clock.advance(4)
    gets.get("/b", 2.0)
    assert list(gets._answers) == ["/b"]


def test_absence_and_errors_count_for_a_second():
    server, clock = Server(), FakeClock()
    gets = SharedGets(server.get, clock.monotonic)
    server.error = ApiError("none", status=404)
    assert gets.get("/a", 60.0) is None and gets.get("/a", 60.0) is None
    assert len(server.asked) == 1
    clock.advance(1.1)
    server.error = ApiError("away")
    for _ in range(2):
        with pytest.raises(ApiError, match="away"):
            gets.get("/a", 60.0)
    assert len(server.asked) == 2
    clock.advance(1.1)
    server.error = None
    assert gets.get("/a", 60.0) == {"n": 3, "more": 1}
