"""Hooks, grace periods, OOM kills and probes on a real runtime."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from integration.rig.manifests import container, host_folder, mounted, pod, shell

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


def test_a_pre_stop_hook_that_outlives_the_grace_period(agent, out):
    """kubernetes/kubernetes#115817: the hook may use the whole grace, SIGTERM follows, then 2 s, then SIGKILL."""
    a = agent().start()
    stubborn = shell("c", "trap 'echo TERM $(date +%s) >> /out/t' TERM; echo UP >> /out/t; while :; do sleep 1; done",
                     volumeMounts=[mounted()], lifecycle={"preStop": {"exec": {"command": [
                         "sh", "-c", "echo PRE $(date +%s) >> /out/t; sleep 60; echo LATE >> /out/t"]}}})
    a.put("slow", pod("slow", stubborn, volumes=[host_folder(out)], terminationGracePeriodSeconds=4))
    a.wait(lambda: lines(out / "t") == ["UP"], 30, "it is up")
    began = time.time()
    a.remove("slow")
    a.wait_gone("slow", 30)
    ended = time.time()
    words = [line.split() for line in lines(out / "t")]
    assert [w[0] for w in words] == ["UP", "PRE", "TERM"]
    pre, term = int(words[1][1]), int(words[2][1])
    assert -1 <= pre - began <= 2 and 3 <= term - pre <= 6 and 5 <= ended - pre <= 10


def test_a_child_of_an_init_container_is_oom_killed(agent):
    """kubernetes/kubernetes#104454: the script above it returns 0, and the step failed all the same."""
    a = agent().start()
    limits = {"limits": {"memory": "32Mi"}}
    prep = shell("prep", "dd if=/dev/zero of=/dev/null bs=200M count=1; sleep 3; exit 0", resources=limits)
    a.put("oomi", pod("oomi", container("main", resources=limits), initContainers=[prep]))
    a.wait(lambda: a.container_status("oomi", "prep").get("restartCount", 0) >= 1, 60, "prep runs again")
    one = a.container_status("oomi", "prep")
    ended = one["state"].get("terminated") or one["lastState"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137 if V2 else 0)
    assert a.status("oomi")["phase"] == "Pending"
    assert a.container_status("oomi", "main")["state"]["waiting"]["reason"] == "PodInitializing"
    assert not a.cri.containers(pod=a.full_name("oomi"), name="main")


SERVER = ("while :; do {{ printf 'HTTP/1.1 {status}\\r\\n{headers}Connection: close\\r\\n\\r\\n'; sleep 0.2; }} | "
          "nc -l -p {port} {to}; done")


def serve(name: str, port: int, status: str, headers: str = "", to: str = "> /dev/null", **more):
    return shell(name, SERVER.format(status=status, headers=headers, port=port, to=to), **more)


def probe(port: int, path: str = "/", **more):
    return {"httpGet": {"path": path, "port": port, "httpHeaders": more.pop("headers", [])}, "periodSeconds": 1,
            **more}


def test_http_probes(agent, out):
    """kubernetes/kubernetes#73172: a foreign redirect is a success with a warning; headers go out as given."""
    a = agent().start()
    headers = [{"name": "host", "value": "web.example.invalid"}, {"name": "X-Trace", "value": "one"},
               {"name": "X-Trace", "value": "two"}]
    away = serve("away", 8081, "302 Found", "Location: http://elsewhere.invalid/\\r\\n",
                 livenessProbe=probe(8081, failureThreshold=1, initialDelaySeconds=2))
    broken = serve("broken", 8082, "500 No", livenessProbe=probe(8082, failureThreshold=2, initialDelaySeconds=2))
    raw = serve("raw", 8083, "204 No Content", to=">> /out/requests", volumeMounts=[mounted()],
                readinessProbe=probe(8083, "/check?a=1&b=%20x", headers=headers))
    a.put("hop", pod("hop", away, broken, raw, volumes=[host_folder(out)]))
    a.wait(lambda: a.container_status("hop", "broken").get("restartCount", 0) >= 1, 60, "broken is restarted")
    a.wait(lambda: a.container_status("hop", "raw").get("ready"), 20, "raw is ready")
    assert a.container_status("hop", "away")["restartCount"] == 0
    said = (out / "requests").read_text().replace("\r", "").splitlines()
    asked = sum(line.startswith("GET") for line in said)
    for line in ("GET /check?a=1&b=%20x HTTP/1.1", "Host: web.example.invalid", "X-Trace: one", "X-Trace: two",
                 "Accept: */*"):
        assert said.count(line) == asked, line
    log = a.log.read_text()
    assert "Liveness probe failed: HTTP probe failed with statuscode: 500" in log
    assert "ProbeWarning" in log
    assert "failed liveness probe, will be restarted" in log


def test_startup_gates_readiness_and_exec_probes_see_the_container(agent, out):
    a = agent().start()
    gate = {"exec": {"command": ["test", "-e", "/out/started"]}, "periodSeconds": 1, "failureThreshold": 60}
    ready = {"exec": {"command": ["test", "-e", "/out/ready"]}, "periodSeconds": 1}
    a.put("gated", pod("gated", container("c", startupProbe=gate, readinessProbe=ready, volumeMounts=[mounted()]),
                       volumes=[host_folder(out)]))
    a.wait_running("gated")
    (out / "ready").touch()
    a.wait(lambda: "Startup probe failed" in a.log.read_text(), 20, "the startup probe fails")
    assert not a.container_status("gated")["started"] and not a.container_status("gated")["ready"]
    (out / "started").touch()
    a.wait(lambda: a.container_status("gated").get("ready"), 20, "it is ready")
    (out / "ready").unlink()
    a.wait(lambda: not a.container_status("gated")["ready"], 20, "it is not ready any more")
    a.restart()
    assert a.container_status("gated")["started"] and a.container_status("gated")["restartCount"] == 0
