import dataclasses

from kubelet_mp.rooms.registry import ROOMS
from kubelet_mp.supervisor.routes import ROUTES, receivers
from kubelet_mp.wire import messages


def test_every_message_has_a_route_and_every_route_a_room():
    kinds = {
        name for name, cls in vars(messages).items()
        if dataclasses.is_dataclass(cls) and issubclass(cls, messages.Message)
    } - {"Message", "PodMessage", "RoomUp"}
    assert kinds == set(ROUTES)
    assert {room for rooms in ROUTES.values() for room in rooms} <= set(ROOMS)


def test_nobody_hears_himself_and_an_address_beats_the_table():
    assert receivers("PodStatus", "", "pods") == ROUTES["PodStatus"]
    assert "http" not in receivers("PodStatus", "", "http")
    assert receivers("PodStatus", "http", "pods") == ("http",)
