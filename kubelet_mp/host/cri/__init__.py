"""The client of the container runtime: CRI v1 over gRPC.

What belongs here: the channel, the calls with their deadlines and checks, the translation of answers into
`model.runtime` and of failures into `errors.RuntimeCallError`. The only place that imports grpc and the stubs.
What may not live here: decisions about pods, retries, caches.
"""

from kubelet_mp.host.cri.channel import EventStream, NotCRI
from kubelet_mp.host.cri.runtime import Runtime

__all__ = ["EventStream", "NotCRI", "Runtime"]
