"""kubelet-mp: a Kubernetes node agent built from one supervisor and one process per concern.

What belongs here: the version, and nothing that costs time or memory to import. The packages below
(`model`, `wire`, `host`, `rooms`, `supervisor`, `cli`) import in one direction only; `config`, `errors`
and `log` may be imported by all of them.
What may not live here: code that does something at import time, or a name re-exported for convenience.
"""

__version__ = "0.1.0"
