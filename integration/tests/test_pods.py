"""Pods on a real runtime: restarts, init containers, images, environment, resolver, small numbers."""

from __future__ import annotations

import re
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cri_api.v1 import api_pb2

from integration.rig.manifests import container, host_folder, mounted, pod, shell

ABSENT = "registry.k8s.io/e2e-test-images/agnhost:0.0.0-absent"
V2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    tmp_path.chmod(0o777)
    return tmp_path


def lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def test_init_containers_run_again_only_with_a_new_sandbox(agent, out):
    """kubernetes/kubernetes#62362, #36485."""
    a = agent().start()
    init = shell("init", "echo init >> /out/log", volumeMounts=[mounted()])
    app = shell("app", "echo app >> /out/log; exec sleep 3600", volumeMounts=[mounted()])
    a.put("prime", pod("prime", app, initContainers=[init], volumes=[host_folder(out)]))
    a.wait(lambda: a.container_status("prime", "app").get("ready"), 60, "the application is ready")
    [running] = a.cri.containers(pod=a.full_name("prime"), name="app")
    for gone in a.cri.containers(pod=a.full_name("prime"), name="init"):
        a.cri.runtime.RemoveContainer(api_pb2.RemoveContainerRequest(container_id=gone.id), timeout=30)
    a.restart()
    a.put("later", pod("later"))
    a.wait_running("later")
    ended = a.container_status("prime", "init")["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("Completed", 0)
    assert lines(out / "log") == ["init", "app"]
    assert [c.id for c in a.cri.containers(pod=a.full_name("prime"), name="app")] == [running.id]

    [box] = a.cri.sandboxes(a.full_name("prime"))
    a.cri.runtime.StopPodSandbox(api_pb2.StopPodSandboxRequest(pod_sandbox_id=box.id), timeout=30)
    a.wait(lambda: lines(out / "log") == ["init", "app"] * 2, 60, "the second run")
    ready = [b for b in a.cri.sandboxes(a.full_name("prime")) if b.state == api_pb2.SANDBOX_READY]
    assert [b.metadata.attempt for b in ready] == [1]
    a.wait(lambda: a.container_status("prime", "app")["restartCount"] in (1, 2), 20, "the restart is counted")
    assert a.container_status("prime", "init")["restartCount"] == 1


def test_the_crash_loop_timetable(agent, out):
    """kubernetes/kubernetes#133472: at once, then 10, 20, 40 s after the end; the status names the delay."""
    a = agent().start()
    crash = shell("c", "date +%s >> /out/starts; exit 3", volumeMounts=[mounted()])
    a.put("crash", pod("crash", crash, volumes=[host_folder(out)]))
    seen: dict[int, Any] = {}
    dead: list[tuple[float, int]] = []

    def look() -> bool:
        one, phase = a.container_status("crash"), a.status("crash").get("phase")
        waiting = (one.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") == "CrashLoopBackOff":
            ended = one["lastState"]["terminated"]
            seen.setdefault(one["restartCount"], (waiting["message"], ended["exitCode"], ended["reason"], phase,
                                                  one["ready"]))
        exited = [c for c in a.cri.containers(pod=a.full_name("crash")) if c.state == api_pb2.CONTAINER_EXITED]
        dead.append((time.time(), len(exited)))
        return len(lines(out / "starts")) >= 5

    a.wait(look, 150, "five starts")
    starts = [int(line) for line in lines(out / "starts")]
    gaps = [after - before for before, after in pairwise(starts)]
    assert gaps[0] <= 5 and 10 <= gaps[1] <= 20 and 20 <= gaps[2] <= 35 and 40 <= gaps[3] <= 65, gaps
    for count, delay in ((1, "10s"), (2, "20s"), (3, "40s")):
        message, *rest = seen[count]
        assert message.startswith(
            f"back-off {delay} restarting failed container=c pod={a.full_name('crash')}_default(")
        assert rest == [3, "Error", "Running", False]
    for start in starts[1:4]:
        assert max(n for when, n in dead if start + 7 <= when <= start + 9.5) <= 1, "dead containers pile up"


def test_dollar_signs(agent, out):
    """kubernetes/kubernetes#101137: references, escapes, order."""
    a = agent().start()
    values = [("A", "one"), ("B", "$(A)-$(C)"), ("C", "three"), ("D", "$$(A)"), ("E", "$$$(A)"), ("F", "$(A"),
              ("G", "${A} $A $"), ("H", "$()x$$y"), ("I", "$(B)"), ("J", "p"), ("J", "$(J)q")]
    script = "printf '%s\\n' \"$@\" > /out/args; env | grep '^[A-J]=' | sort > /out/env"
    one = container("c", "sh", "-c", script, "x", volumeMounts=[mounted()],
                    env=[{"name": name, "value": value} for name, value in values],
                    args=["$(A)", "$$(A)", "$(NOPE)", "$(D)", "$(B)", "a$$b"])
    a.put("dollar", pod("dollar", one, restartPolicy="Never", volumes=[host_folder(out)]))
    a.wait(lambda: a.status("dollar").get("phase") == "Succeeded", 60, "it ended")
    assert lines(out / "args") == ["one", "$(A)", "$(NOPE)", "$(A)", "one-$(C)", "a$b"]
    assert lines(out / "env") == ["A=one", "B=one-$(C)", "C=three", "D=$(A)", "E=$one", "F=$(A", "G=${A} $A $",
                                  "H=$()x$y", "I=one-$(C)", "J=pq"]
    [ended] = a.cri.containers(pod=a.full_name("dollar"))  # a finished pod keeps its container while it is wanted
    handed = {one["key"]: one.get("value", "") for one in a.cri.inspect(ended.id)[1]["config"]["envs"]}
    assert (handed["D"], handed["J"]) == ("$(A)", "pq")


def test_small_numbers_of_cpu(agent):
    """kubernetes/kubernetes#23113: the kernel's smallest quota, and the pod's own cgroup."""
    a = agent().start()
    limits = {"x": "5m", "y": "7m"}
    a.put("tiny", pod("tiny", *(container(n, resources={"limits": {"cpu": cpu, "memory": "32Mi"}})
                                for n, cpu in limits.items())))
    a.wait_running("tiny", 2)
    a.wait(lambda: a.status("tiny").get("qosClass") == "Guaranteed", 10, "its QoS class")
    uid = (a.pod("tiny") or {})["metadata"]["uid"]
    top = Path("/sys/fs/cgroup") if V2 else Path("/sys/fs/cgroup/cpu")
    found = Counter(_cpu(folder) for folder in top.rglob(f"*pod{uid}*/**/") if _cpu(folder))
    if V2:
        assert found["1200 100000"] == 1 and found["1000 100000"] >= 2
    else:
        assert {"1200 100000 12", "1000 100000 5", "1000 100000 7"} <= set(found), found


def _cpu(folder: Path) -> str:
    names = ["cpu.max"] if V2 else ["cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares"]
    try:
        return " ".join((folder / name).read_text().strip() for name in names)
    except OSError:
        return ""


def test_memory_volumes_and_rounding(agent):
    """kubernetes/kubernetes#63126, #61192."""
    a = agent().start()
    fields = {"Q_CPU": ("limits.cpu", None), "Q_CPU_M": ("limits.cpu", "1m"), "Q_REQ_M": ("requests.cpu", "1m"),
              "Q_MEM": ("limits.memory", None), "Q_MEM_GI": ("limits.memory", "1Gi")}
    env = [{"name": name, "valueFrom": {"resourceFieldRef": {
        "resource": resource, **({"divisor": divisor} if divisor else {})}}} for name, (resource, divisor) in
        fields.items()]
    volumes = [{"name": "m1", "emptyDir": {"medium": "Memory", "sizeLimit": "100Mi"}},
               {"name": "m2", "emptyDir": {"medium": "Memory", "sizeLimit": "10Mi"}},
               {"name": "m3", "emptyDir": {"medium": "Memory"}}]
    first = shell("a", "df -k /m1 /m2 /m3; env | grep ^Q_ | sort; sleep 3600", env=env,
                  resources={"limits": {"cpu": "250m", "memory": "32Mi"}},
                  volumeMounts=[mounted(n, f"/{n}") for n in ("m1", "m2", "m3")])
    a.put("sizes", pod("sizes", first, container("b", resources={"limits": {"memory": "32Mi"}}), volumes=volumes))
    a.wait_running("sizes", 2)
    [one] = a.cri.containers(pod=a.full_name("sizes"), name="a")
    a.wait(lambda: "Q_REQ_M" in a.output(one.id), 10, "its output")
    text = a.output(one.id)
    assert re.findall(r"(?m)^tmpfs\s+(\d+).*(/m\d)$", text) == [("65536", "/m1"), ("10240", "/m2"), ("65536", "/m3")]
    assert [line for line in text.splitlines() if line.startswith("Q_")] == [
        "Q_CPU=1", "Q_CPU_M=250", "Q_MEM=33554432", "Q_MEM_GI=1", "Q_REQ_M=250"]


def test_four_images_four_outcomes(agent):
    """kubernetes/kubernetes#87278: image faults are waiting reasons, never a failed pod."""
    a = agent().start()
    upper = "docker.io/library/BusyBox:latest"
    a.put("img", pod("img", container("ok"), {**container("never"), "image": ABSENT, "imagePullPolicy": "Never"},
                     {**container("upper"), "image": upper}, {**container("gone"), "image": ABSENT},
                     restartPolicy="Never"))
    [ok] = a.wait_running("img")
    said: dict[tuple[str, str], str] = {}
    order: list[str] = []

    def look() -> bool:
        status = a.status("img")
        assert status["phase"] == "Pending"
        for one in status.get("containerStatuses") or []:
            assert "terminated" not in one["state"], one
            waiting = one["state"].get("waiting")
            if waiting and waiting["reason"] != "ContainerCreating":
                said[(one["name"], waiting["reason"])] = waiting.get("message", "")
                if one["name"] == "gone" and order[-1:] != [waiting["reason"]]:
                    order.append(waiting["reason"])
        return order.count("ErrImagePull") >= 3 and order[-1] == "ImagePullBackOff"

    a.wait(look, 75, "three pulls")
    assert set(said) == {("never", "ErrImageNeverPull"), ("upper", "InvalidImageName"), ("gone", "ErrImagePull"),
                         ("gone", "ImagePullBackOff")}
    assert said["never", "ErrImageNeverPull"] == (
        f'Container image "{ABSENT}" is not present with pull policy of Never')
    assert said["upper", "InvalidImageName"].startswith(f'Failed to apply default image tag "{upper}":')
    backing_off = said["gone", "ImagePullBackOff"]
    assert backing_off.startswith(f'Back-off pulling image "{ABSENT}"') and len(backing_off) > len(ABSENT) + 50
    assert [c.id for c in a.cri.containers(pod=a.full_name("img"), name="ok")] == [ok]
    assert a.container_status("img", "ok")["restartCount"] == 0


RESOLVER = """# node resolver
search old.invalid
nameserver 192.0.2.1
nameserver 192.0.2.2
options ndots:2 attempts:1
search corp.invalid. lab.invalid .
nameserver 192.0.2.3
nameserver 192.0.2.4
options ndots:3
"""


def test_a_resolver_file_with_too_much_in_it(agent, out):
    """kubernetes/kubernetes#82756."""
    (out / "resolv.conf").write_text(RESOLVER)
    a = agent(config={"resolvConf": str(out / "resolv.conf"), "clusterDNS": ["10.96.0.10"],
                      "clusterDomain": "cluster.local"}).start()
    specs: dict[str, dict[str, Any]] = {"d": {"dnsPolicy": "Default"}, "c": {"dnsPolicy": "ClusterFirst"},
                                        "h": {"dnsPolicy": "ClusterFirst", "hostNetwork": True}}
    for name, spec in specs.items():
        copy = shell("c", f"cp /etc/resolv.conf /out/{name}; touch /out/{name}.done; sleep 3600",
                     volumeMounts=[mounted()])
        a.put(name, pod(name, copy, volumes=[host_folder(out)], **spec))
    a.wait(lambda: all((out / f"{name}.done").exists() for name in specs), 60, "three resolver files")
    for name in "dh":
        assert _resolver(out / name) == (["192.0.2.1", "192.0.2.2", "192.0.2.3"], ["corp.invalid", "lab.invalid"],
                                         {"attempts:1", "ndots:3"})
    assert _resolver(out / "c") == (
        ["10.96.0.10"],
        ["default.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.invalid", "lab.invalid"],
        {"ndots:5"})
    a.wait(lambda: re.search(r"omitted.*192\.0\.2\.1 192\.0\.2\.2 192\.0\.2\.3", a.log.read_text()), 10, "a warning")


def _resolver(path: Path) -> tuple[list[str], list[str], set[str]]:
    words = [line.split() for line in lines(path)]
    servers = [w[1] for w in words if w[:1] == ["nameserver"]]
    [search] = [w[1:] for w in words if w[:1] == ["search"]]
    return servers, search, {option for w in words if w[:1] == ["options"] for option in w[1:]}


def test_a_pod_without_events_of_the_runtime(agent, debian_runtime):
    """containerd 1.6 has no GetContainerEvents: the relist sees what happens."""
    a = agent(runtime=debian_runtime).start()
    a.put("web", pod("web", shell("c", "sleep 3600")))
    [first] = a.wait_running("web")
    a.cri.runtime.StopContainer(api_pb2.StopContainerRequest(container_id=first, timeout=0), timeout=30)
    a.wait(lambda: a.container_status("web").get("restartCount") == 1, 30, "the restart")
    a.remove("web")
    a.wait_gone("web")


def test_nothing_of_a_removed_pod_stays(agent, out):
    a = agent().start()
    a.put("web", pod("web", container(volumeMounts=[mounted("m", "/m"), mounted("d", "/d")]), volumes=[
        {"name": "m", "emptyDir": {"medium": "Memory"}}, {"name": "d", "emptyDir": {}}]))
    a.wait_running("web")
    uid = (a.pod("web") or {})["metadata"]["uid"]
    assert f"pods/{uid}/" in Path("/proc/self/mounts").read_text()
    a.remove("web")
    a.wait(lambda: not (a.root / "pods" / uid).exists(), 60, "the pod's directory is gone")
    assert uid not in Path("/proc/self/mounts").read_text()
    a.wait(lambda: not a.cri.sandboxes(a.full_name("web")), 30, "its sandbox is gone")
    a.wait(lambda: not list(Path("/sys/fs/cgroup").glob(f"**/*pod{uid}")), 30, "its cgroups are gone")
    assert a.pods() == []


def test_a_grace_period_is_kept_and_then_cut(agent, out):
    a = agent().start()
    stubborn = shell("c", "trap 'echo TERM >> /out/t' TERM; echo UP >> /out/t; while :; do sleep 0.1; done",
                     volumeMounts=[mounted()])
    a.put("slow", pod("slow", stubborn, volumes=[host_folder(out)], terminationGracePeriodSeconds=4))
    a.wait(lambda: lines(out / "t") == ["UP"], 30, "it is up")
    began = time.monotonic()
    a.remove("slow")
    a.wait_gone("slow", 20)
    assert lines(out / "t") == ["UP", "TERM"] and 3.5 <= time.monotonic() - began <= 8


def test_the_end_of_the_runtime_and_its_return(agent, runtime):
    a = agent().start()
    a.put("web", pod("web"))
    [first] = a.wait_running("web")
    runtime.stop_daemon()
    try:
        a.put("late", pod("late"))
        a.wait(lambda: "containerd.sock" in a.log.read_text() or "unavailable" in a.log.read_text().lower(), 30,
               "the log says that the runtime is away")
        assert a.get("/healthz", port="healthzPort")[0] == 200
    finally:
        runtime.start_daemon()
    a.wait_running("late", seconds=60)
    assert a.wait_running("web") == [first]

