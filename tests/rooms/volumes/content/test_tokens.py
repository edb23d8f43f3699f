from typing import Any

import pytest

from kubelet_mp.errors import ApiError
from kubelet_mp.rooms.volumes.content.tokens import TokenKey, Tokens
from tests.support import FakeClock

KEY = TokenKey("ns", "sa", "aud", 1000, "pod", "u")


class Server:
    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.away = False
        self.lasts: int | None = None

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((path, body))
        if self.away:
            raise ApiError("no answer")
        spec = {**body["spec"], **({"expirationSeconds": self.lasts} if self.lasts else {})}
        return {"spec": spec, "status": {"token": f"t{len(self.asked)}"}}


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def tokens(server: Server, clock: FakeClock) -> Tokens:
    made = Tokens(server.create, clock.monotonic, roll=lambda: 0.5)
    made.hold("u")
    return made


def test_a_token_is_asked_for_once_bound_to_its_pod(tokens: Tokens, server: Server):
    assert tokens.get(KEY) == tokens.get(KEY) == "t1"
    [(path, body)] = server.asked
    assert path == "/api/v1/namespaces/ns/serviceaccounts/sa/token"
    assert body["spec"] == {"audiences": ["aud"], "expirationSeconds": 1000,
                            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": "u"}}
    assert KEY._replace(audience="").request()["spec"]["audiences"] == []


def test_it_is_renewed_at_four_fifths_of_what_the_server_gave(tokens: Tokens, server: Server, clock: FakeClock):
    server.lasts = 2000
    tokens.get(KEY)
    clock.advance(1594)
    assert tokens.due() == set() and tokens.get(KEY) == "t1"
    clock.advance(1.5)  # 1600 s less a jitter of 5 s
    assert tokens.due() == {"u"} and tokens.get(KEY) == "t2" and tokens.due() == set()


def test_it_is_renewed_each_day(tokens: Tokens, server: Server, clock: FakeClock):
    server.lasts = 10 * 86400
    tokens.get(KEY)
    clock.advance(86400)
    assert tokens.get(KEY) == "t2"


def test_the_old_one_serves_until_it_expires(tokens: Tokens, server: Server, clock: FakeClock):
    tokens.get(KEY)
    server.away = True
    clock.advance(850)
    assert tokens.get(KEY) == tokens.get(KEY) == "t1" and len(server.asked) == 2
    clock.advance(16)
    assert tokens.due() == {"u"} and tokens.get(KEY) == "t1" and len(server.asked) == 3
    clock.advance(200)
    with pytest.raises(ApiError, match="failed to fetch token: no answer"):
        tokens.get(KEY)


def test_tokens_of_a_dropped_pod_are_forgotten_even_if_they_come_late(tokens: Tokens, server: Server):
    tokens.get(KEY)
    tokens.drop("u")
    assert tokens.get(KEY) == "t2" and tokens.get(KEY) == "t3"


def test_an_answer_without_a_token_is_an_error():
    with pytest.raises(ApiError, match="gave no token"):
        Tokens(lambda path, body: {}, FakeClock().monotonic).get(KEY)
