"""What travels on a link: a message pickled by its sender, in a cover that a router can read without opening it."""

from __future__ import annotations

import pickle
from typing import NamedTuple

from kubelet_mp.wire.messages import Message

CREDIT = "credit"  # the kind of the empty envelope with which a room asks for its next batch
LOSSY = frozenset({"Event"})  # kinds that are dropped, oldest first, when a mailbox is full


class Envelope(NamedTuple):
    """`kind` is the message's class name, `to` a room ("" = wherever its kind is routed), `sent` monotonic."""

    kind: str
    key: str
    to: str
    room: str
    incarnation: int
    seq: int
    sent: float
    payload: bytes

    def open(self) -> Message:
        """Unpickle the message. Only rooms do that, and only with what their siblings sent."""
        message = pickle.loads(self.payload)
        if not isinstance(message, Message):
            raise TypeError(f"envelope {self.kind} from room {self.room} holds a {type(message).__name__}")
        return message


def seal(message: Message, *, room: str, incarnation: int, seq: int, sent: float, to: str = "") -> Envelope:
    """Pickle here, in the caller: a queue's feeder thread would drop what it cannot pickle without a word."""
    payload = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return Envelope(type(message).__name__, message.key(), to, room, incarnation, seq, sent, payload)


def credit(room: str, incarnation: int, seq: int, sent: float) -> Envelope:
    return Envelope(CREDIT, "", "", room, incarnation, seq, sent, b"")
