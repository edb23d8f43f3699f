"""A CRI runtime in memory, served by real gRPC on a real unix socket.

    with FakeCRI() as fake:                      # or FakeCRI.crio(); options: events, cgroup_driver, images
        runtime = Runtime(fake.endpoint)
        fake.add_image("docker.io/library/busybox:latest")
        ...
        fake.exit_container("web", code=1)       # by container id or by name (the newest of that name)

What it does as a runtime does: sandboxes with IPs (none on the host's network, none once stopped), states,
attempt names that are reserved, `containerd` reasons (Completed, Error, OOMKilled), image ids, filters, log
files (with `logs=True`), GetContainerEvents with the statuses of the pod. StopContainer is instant and gives
exit code 143, unless `fake.stop_seconds[NAME]` says how long the container needs (longer than the grace
period: it is killed, 137). `fake.exits[NAME] = code` makes a container end as soon as it is started.
`fake.on_exec = f(container_name, cmd) -> (stdout, stderr, code)` answers ExecSync; it may raise TimeoutError.

Faults, by the name of the RPC; `when` looks at the request; each returns nothing but `hang`:
    fake.fail("RunPodSandbox", "UNAVAILABLE", "no network", times=2, when=lambda r: ...)
    fake.delay("ListContainers", 0.2, times=1)
    hang = fake.hang("ContainerStatus", when=...); ...; hang.reached(2.0); hang.release()
    fake.vanish("web")            the container is gone, with no event and no trace
    fake.drop_events = True       state changes, but nobody is told
    fake.break_streams()          every event stream ends with UNAVAILABLE
    fake.stop(); fake.start()     the runtime restarts, its containers live on
    fake.set_ready(runtime=..., network=..., message=...)
What was asked: `fake.calls` (name, request, monotonic time), `fake.count(name)`, `fake.requests(name)`.

Flavours: `FakeCRI()` is containerd 2.x; `events=False` answers GetContainerEvents and RuntimeConfig as
containerd 1.6 does (Unimplemented); `FakeCRI.crio()` has CRI-O's name, bare image ids and no events unless
switched on. `NotCRI` is a gRPC server without CRI, `PlainHTTP` a socket that speaks HTTP/1.1.
"""

from tests.fakes.cri.faults import Hang
from tests.fakes.cri.runtime import ImageSpec
from tests.fakes.cri.server import Call, FakeCRI, NotCRI, PlainHTTP

__all__ = ["Call", "FakeCRI", "Hang", "ImageSpec", "NotCRI", "PlainHTTP"]
