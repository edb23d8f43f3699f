"""Structured logging to stderr: one line a record, prefixed with the room, secrets masked.

Use: `_log = log.get("pods")`, then `_log.info("Started container", pod="ns/name", container="c")`; detail
that only a debugging operator wants goes through `_log.v(4)`. The levels are klog's: 0 is always shown,
2 is the usual "what happens", 4 debug, 6 and more traces. setup() is called once by the supervisor before it
forks, set_room() once by each child after.

What belongs here: the logger, the formats, the masking.
What may not live here: configuration (setup() is told everything), metrics, anything that blocks.
"""

from kubelet_mp.log.logger import Logger, get, set_room, set_verbosity, setup, verbosity
from kubelet_mp.log.mask import MASKED, mask

__all__ = ["MASKED", "Logger", "get", "mask", "set_room", "set_verbosity", "setup", "verbosity"]
