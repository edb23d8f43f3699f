"""What operators get wrong: each with a message that says what and where, and no running pod is harmed."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from cri_api.v1 import api_pb2

from integration.rig import layout
from integration.rig.agent import ENVIRONMENT, Agent
from integration.rig.manifests import container, pod
from tests.fakes.cri import FakeCRI, NotCRI, PlainHTTP

V1 = not Path("/sys/fs/cgroup/cgroup.controllers").exists()
QUICK = ("sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait")


def quick(name: str, **spec: Any) -> dict[str, Any]:
    return pod(name, container("c", *QUICK), **spec)


class Node:
    """An agent with one pod that runs from the first test to the last, whatever the agent is told."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        agent.put("calm", quick("calm"))
        self.running = agent.start().wait_running("calm")
        agent.wait(lambda: agent.status("calm").get("phase") == "Running", 10, "shown Running")

    def refused(self, config: Mapping[str, Any], flags: Sequence[str] = ()) -> str:
        """Start the agent so configured; it must end with 1. Returns what it says, without escapes."""
        self.stop()
        said = len(self.agent.log.read_text())
        try:
            self.agent.configure(config)
            self.agent.flags = list(flags)
            assert self.agent.start(wait=False).wait_exit(20) == 1, self.agent.log_tail()
        finally:
            self.agent.configure({})
            self.agent.flags = []
        assert self.agent.family() == {}
        self.check_containers()
        return self.agent.log.read_text()[said:].replace('\\"', '"')

    def stop(self) -> None:
        if self.agent.alive():
            assert self.agent.stop() == 0

    def up(self) -> None:
        if not self.agent.alive():
            self.agent.start()

    def check_containers(self) -> None:
        found = self.agent.cri.containers(self.agent.full_name("calm"))
        assert [c.id for c in found] == self.running
        assert [c.state for c in found] == [api_pb2.CONTAINER_RUNNING]

    def check_calm(self) -> None:
        """The pod's container still is the first one, here and in the status."""
        a = self.agent
        self.check_containers()
        a.wait(lambda: a.status("calm").get("phase") == "Running", 10, "calm is shown Running")
        status = a.container_status("calm")
        assert (status["restartCount"], status["lastState"]) == (0, {}), status

    def told(self, *words: str) -> str:
        """Wait until `kubelet-mp pods` prints all of the words; return what it prints."""

        def shown() -> str:
            text = self.agent.cli("pods").stdout
            return text if all(word in text for word in words) else ""

        return str(self.agent.wait(shown, 10, f"`kubelet-mp pods` shows {words}"))


@pytest.fixture(scope="module")
def node(runtime) -> Iterator[Node]:
    agent = Agent(runtime, runtime.layout.data / "agents" / "bad-input")
    try:
        found = Node(agent)
        yield found
        found.up()
        found.check_calm()
        assert agent.stop() == 0
    finally:
        left = agent.clean()
    assert left == []


@pytest.fixture
def served(node) -> Node:
    """The node with its agent up."""
    node.up()
    return node


# ---- configuration

REFUSED: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "wrong type": ({"maxPods": "many"}, [], r"config\.yaml.*\n?.*maxPods: .*\(got 'many'\)"),
    "wrong type inside": ({"authentication": {"webhook": {"cacheTTL": "soon"}}}, [],
                          r"authentication\.webhook\.cacheTTL: .*\(got 'soon'\)"),
    "wrong value": ({"healthzPort": 70000}, [], r"invalid configuration: healthzPort"),
    "two at once": ({"healthzPort": 70000, "imageGCHighThresholdPercent": 200}, [],
                    r"(?s)healthzPort.*imageGCHighThresholdPercent"),
    "unknown flag": ({}, ["--no-such-flag"], r"no-such-flag"),
    "no kubeconfig": ({}, ["--kubeconfig", "/nowhere/kubeconfig"],
                      r"cannot read kubeconfig /nowhere/kubeconfig: No such file.*fix"),
    "systemd driver": ({"cgroupDriver": "systemd"}, [], r"cgroupDriver.*systemd.*fix: .*cgroupfs"),
    "no such address": ({"address": "192.0.2.77"}, [], r"cannot listen on 192\.0\.2\.77:\d+ \(port\).*fix"),
    "webhook": ({"authorization": {"mode": "Webhook"}}, [],
                r"no client provided, cannot use webhook authorization.*fix: .*AlwaysAllow"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_configuration_that_is_refused(node, case):
    config, flags, pattern = REFUSED[case]
    said = node.refused(config, flags)
    assert re.search(pattern, said), said
    assert "Traceback" not in said


def test_a_configuration_file_that_is_not_yaml(node):
    node.stop()
    node.agent.config_file.write_text("port: [1,\n  2")
    assert node.agent.start(wait=False).wait_exit(20) == 1
    assert re.search(r"Error: .*config\.yaml.*line 2", node.agent.log_tail())
    node.agent.configure({})
    node.check_containers()


def test_an_unknown_field_is_only_warned_about(node):
    node.stop()
    node.agent.configure({"authentication": {"webhook": {"enable": True}}, "maxPodz": 3})
    node.agent.start()
    said = node.agent.log.read_text()
    for path in ("authentication.webhook.enable", "maxPodz"):
        assert re.search(rf"W.*config\.yaml: unknown field '{path}' is ignored", said), said
    node.check_calm()


KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def test_kubeconfigs(node, tmp_path):
    """The message names file and fault."""
    file = tmp_path / "kubeconfig"
    for text, said in (("{", f"kubeconfig {file} is not YAML"),
                       (KUBECONFIG.replace("token: t", "exec: {command: login}"),
                        f"kubeconfig {file} asks for an exec plugin (exec), which is not supported"),
                       (KUBECONFIG.replace("current-context: x", "current-context: y"),
                        f"kubeconfig {file} has no context 'y'")):
        file.write_text(text)
        assert said in node.refused({}, ["--kubeconfig", str(file)])


@pytest.mark.skipif(not V1, reason="this machine has cgroup v2")
def test_cgroup_v1_unless_it_is_allowed(node):
    said = node.refused({"failCgroupV1": None})  # the default
    assert re.search(r"configured to not run on a host using cgroup v1.*fix: .*failCgroupV1: false", said), said


@pytest.mark.parametrize("field", ["port", "readOnlyPort", "healthzPort"])
def test_a_port_in_use(node, field):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        said = node.refused({field: number})
    assert re.search(rf"port {number} on 127\.0\.0\.1 is in use \({field}\).*fix: stop the program", said), said


def test_a_second_agent_on_the_same_root(served):
    """It is refused before it touches anything; the first goes on."""
    before = served.agent.rooms()
    done = subprocess.run(served.agent.command(), env={**os.environ, **ENVIRONMENT}, cwd=served.agent.home,
                          capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    said = rf"another kubelet-mp \(pid {before['supervisor']}\) holds the lock .*fix: stop it"
    assert re.search(said, done.stderr), done.stderr
    assert served.agent.rooms() == before
    served.check_calm()


# ---- endpoints

@pytest.mark.parametrize("kind", [NotCRI, PlainHTTP])
def test_an_endpoint_that_is_no_cri(node, kind):
    with kind() as server:
        said = node.refused({"containerRuntimeEndpoint": server.endpoint})
    assert re.search(rf'validate CRI v1 runtime API for endpoint "{server.endpoint}".*fix: .*CRI plugin', said), said
    assert "Traceback" not in said


def test_a_runtime_with_another_cgroup_driver(node):
    """Both sides and the fix are named."""
    with FakeCRI.crio() as fake:
        said = node.refused({"containerRuntimeEndpoint": fake.endpoint, "cgroupDriver": "cgroupfs"})
    assert re.search(r'the cgroup driver "systemd".*cgroupDriver: cgroupfs.*fix: ', said), said


# ---- manifests

def _with_secret() -> dict[str, Any]:
    return quick("secretive", volumes=[{"name": "s", "secret": {"secretName": "s"}}])


BAD: dict[str, tuple[str | bytes, str]] = {
    "not-yaml": ("metadata: [unclosed", "line 2, column 1: not valid YAML"),
    "not-text": (b"\xff\xfe\x00", "is not UTF-8"),
    "empty": ("", "empty"),
    "not-a-pod": (json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}), "ConfigMap"),
    "nameless": (json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}}),
                 "metadata.name: Required value"),
    "invalid": (json.dumps(pod("invalid", container("Not_A_Label"))), "spec.containers[0].name: Invalid value"),
    "wrong-type": (json.dumps(pod("wrong", hostNetwork="surely")), "spec.hostNetwork"),
    "huge": ("# " + "x" * (10 << 20) + "\n" + json.dumps(quick("huge")), "10485760 bytes"),
    "secretive": (json.dumps(_with_secret()), "static pods may not reference secrets"),
    "twin": (json.dumps(quick("calm")), 'pod "default/calm-node-1" is defined by'),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_manifest(served, kind):
    """It is shown with its file and reason as long as it lies there, and logged once."""
    data, reason = BAD[kind]
    file = served.agent.manifests / f"{kind}.yaml"
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    try:
        served.told(str(file), reason)
        lines = [line for line in served.agent.log.read_text().splitlines() if str(file) in line and line[0] == "E"]
        assert len(lines) == 1, lines
        served.agent.put("meanwhile", quick("meanwhile"))
        served.agent.wait_running("meanwhile")
        served.check_calm()
    finally:
        file.unlink()
        served.agent.remove("meanwhile")
    served.agent.wait(lambda: str(file) not in served.agent.cli("pods").stdout, 10, "the problem is gone")
    served.agent.wait_gone("meanwhile")
    served.check_calm()


def test_why_tells_what_is_wrong_with_a_manifest(served):
    file = served.agent.put("secretive", _with_secret())
    served.told("secretive.yaml")
    said = served.agent.cli("why", "secretive").stdout
    assert f"Manifest {file}: " in said and "may not reference secrets" in said
    assert said.rstrip().endswith("Waiting for: its manifest to be corrected")
    served.agent.remove("secretive")


def test_an_image_that_cannot_be_had(served):
    absent = "registry.k8s.io/e2e-test-images/agnhost:0.0.0-absent"
    served.agent.put("imageless", pod("imageless", {**container(), "image": absent}))
    served.told("imageless-node-1", "ImagePull")
    served.agent.wait(lambda: f'Back-off pulling image "{absent}"' in served.agent.cli("why", "imageless").stdout, 30,
                    "why names the image")
    served.agent.remove("imageless")
    served.agent.wait(lambda: served.agent.pod("imageless") is None, 20, "it is gone")
    served.check_calm()


def test_check_finds_what_is_wrong_beforehand(served):
    """`kubelet-mp check` beside a running agent: it names the lock, and starts nothing."""
    before = served.agent.rooms()
    flags = [*served.agent.command()[3:], "--container-runtime-endpoint", f"unix://{layout.tests().run}/none.sock"]
    done = served.agent.cli("check", *flags, seconds=60)
    assert done.returncode == 1
    assert "none.sock" in done.stdout and "fix" in done.stdout.lower(), done.stdout + done.stderr
    assert served.agent.rooms() == before
