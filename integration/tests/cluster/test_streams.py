"""kubectl exec, attach, cp, port-forward and debug through the API server."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration.rig.cluster import Cluster
from integration.rig.console import poll
from integration.rig.images import BUSYBOX

SERVER = "mkdir -p /www; echo hello > /www/index.html; httpd -p 8080 -h /www; exec cat"


@pytest.fixture
def pod(cluster: Cluster, node, namespace: str) -> str:
    """A pod with a web server, and a process that echoes its input."""
    node()
    container = {"name": "c", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", "stdin": True,
                 "command": ["sh", "-c", SERVER]}
    spec = {"nodeName": "node-1", "terminationGracePeriodSeconds": 0, "containers": [container]}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace}, "spec": spec})
    cluster.wait_pods(namespace, 1)
    return namespace


def kubectl(cluster: Cluster, namespace: str, *words: str, data: bytes = b"", terminal: bool = False
            ) -> subprocess.CompletedProcess[bytes]:
    command = [str(cluster.programs / "kubectl"), f"--kubeconfig={cluster.admin}", "-n", namespace, *words]
    if terminal:  # script(1) gives it one
        command = ["script", "-qec", " ".join(f"'{word}'" for word in command), "/dev/null"]
    return subprocess.run(command, input=data, capture_output=True, timeout=60, check=False)


def test_exec_with_and_without_a_terminal(cluster: Cluster, pod: str) -> None:
    done = kubectl(cluster, pod, "exec", "p", "--", "sh", "-c", "echo out; echo err >&2")
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 0)
    assert kubectl(cluster, pod, "exec", "-i", "p", "--", "sort", data=b"b\na\n").stdout == b"a\nb\n"
    for code, script in ((1, "exit 1"), (137, "kill -9 $$")):
        assert kubectl(cluster, pod, "exec", "p", "--", "sh", "-c", script).returncode == code
    done = kubectl(cluster, pod, "exec", "-it", "p", "--", "tty", terminal=True)
    assert b"/dev/pts/" in done.stdout, done
    assert kubectl(cluster, pod, "exec", "-c", "nope", "p", "--", "true").returncode != 0


def test_attach_and_logs(cluster: Cluster, pod: str) -> None:
    follower = subprocess.Popen(
        [str(cluster.programs / "kubectl"), f"--kubeconfig={cluster.admin}", "-n", pod, "attach", "-i", "p"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert follower.stdin and follower.stdout
        follower.stdin.write(b"attached\n")
        follower.stdin.flush()
        assert follower.stdout.readline() == b"attached\n"
    finally:
        follower.kill()
        follower.wait(10)
    assert poll(lambda: b"attached" in kubectl(cluster, pod, "logs", "p").stdout, 10)


def test_files_are_copied_both_ways(cluster: Cluster, pod: str, tmp_path: Path) -> None:
    data = hashlib.shake_128(b"seed").digest(50_000_000)
    (tmp_path / "there").write_bytes(data)
    assert kubectl(cluster, pod, "cp", f"{tmp_path}/there", "p:/tmp/there").returncode == 0
    seen = kubectl(cluster, pod, "exec", "p", "--", "sha256sum", "/tmp/there").stdout.split()[0].decode()
    assert seen == hashlib.sha256(data).hexdigest()
    assert kubectl(cluster, pod, "cp", "p:/tmp/there", f"{tmp_path}/back").returncode == 0
    assert (tmp_path / "back").read_bytes() == data


@contextmanager
def forwarded(cluster: Cluster, namespace: str, port: int) -> Iterator[int]:
    """A local port from which kubectl forwards to the pod's."""
    words = ["port-forward", "--address=127.0.0.1", "p", f":{port}"]
    process = subprocess.Popen(
        [str(cluster.programs / "kubectl"), f"--kubeconfig={cluster.admin}", "-n", namespace, *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert process.stdout
        line = process.stdout.readline().decode()
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        assert found, line
        yield int(found.group(1))
    finally:
        process.kill()
        process.wait(10)


def test_ports_are_forwarded(cluster: Cluster, pod: str) -> None:
    with forwarded(cluster, pod, 8080) as port, socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert read_all(sock).endswith(b"hello\n")


def read_all(sock: socket.socket) -> bytes:
    found = b""
    while data := sock.recv(65536):
        found += data
    return found


def test_a_debug_container_joins_the_pod(cluster: Cluster, pod: str) -> None:
    done = kubectl(cluster, pod, "debug", "p", f"--image={BUSYBOX}", "--image-pull-policy=IfNotPresent", "-c", "look",
                   "--target=c", "--profile=general", "--", "sh", "-c", "ps; echo seen")
    assert done.returncode == 0, done
    output = poll(lambda: found if b"seen" in (found := kubectl(cluster, pod, "logs", "p", "-c", "look").stdout)
                  else b"", 30)
    assert b"httpd" in output, output
    status = cluster.get(f"/api/v1/namespaces/{pod}/pods/p")["status"]
    assert [one["name"] for one in status["ephemeralContainerStatuses"]] == ["look"]
    assert status["phase"] == "Running" and status["containerStatuses"][0]["restartCount"] == 0


def test_a_running_container_is_resized_over_a_restart_of_the_agent(cluster: Cluster, node, namespace: str) -> None:
    agent = node()
    resources = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}}
    container = {"name": "c", "image": BUSYBOX, "imagePullPolicy": "IfNotPresent", "command": ["sleep", "3600"],
                 "resources": resources}
    spec = {"nodeName": "node-1", "terminationGracePeriodSeconds": 0, "containers": [container]}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": namespace}, "spec": spec})
    (before,) = cluster.wait_pods(namespace, 1)
    agent.stop()
    wanted = {"requests": {"cpu": "20m", "memory": "16Mi"}, "limits": {"cpu": "200m", "memory": "32Mi"}}
    patch = json.dumps({"spec": {"containers": [{"name": "c", "resources": wanted}]}})
    assert kubectl(cluster, namespace, "patch", "pod", "p", "--subresource=resize", "-p", patch).returncode == 0
    agent.start()

    def resized() -> bool:
        pod = cluster.get(f"/api/v1/namespaces/{namespace}/pods/p")
        status = pod["status"]
        over = not any(one["type"].startswith("PodResize") for one in status["conditions"])
        return over and status.get("observedGeneration") == pod["metadata"]["generation"]

    cluster.wait(resized, 30, "the resize is over")
    status = cluster.get(f"/api/v1/namespaces/{namespace}/pods/p")["status"]["containerStatuses"][0]
    assert status["resources"] == wanted and status["containerID"] == before["status"]["containerStatuses"][0][
        "containerID"]
    shown = kubectl(cluster, namespace, "exec", "p", "--", "sh", "-c",
                    "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null").stdout
    assert shown.split() == [str(32 << 20).encode()]
