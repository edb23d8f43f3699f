"""The only code that touches the outside: container runtime, API server, cgroups, mounts, netlink, files.

What belongs here: one module or package a kind of outside thing, each told its roots and deadlines, each
turning the outside's errors into those of `kubelet_mp.errors`.
What may not live here: decisions about pods, and anything that knows of rooms or their messages.
"""

import os

# gRPC's core reads this when it is first imported; its notes on each lost connection are no news for a journal
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
