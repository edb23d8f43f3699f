"""The parts of the CRI client that need no server."""

from __future__ import annotations

import grpc
import pytest
from cri_api.v1 import api_pb2 as pb
from prometheus_client import CollectorRegistry, generate_latest

from kubelet_mp.errors import RuntimeCallError
from kubelet_mp.host.cri import convert
from kubelet_mp.host.cri.channel import target
from kubelet_mp.host.cri.failures import go_name
from kubelet_mp.host.cri.sayonce import PERIOD, SayOnce
from kubelet_mp.host.cri_metrics import RuntimeMetrics
from kubelet_mp.model.runtime import State
from tests.support import FakeClock


@pytest.mark.parametrize(("endpoint", "name"), [
    ("unix:///run/a.sock", "unix:/run/a.sock"),
    ("/run/a.sock", "unix:/run/a.sock"),
    ("tcp://1.2.3.4:5", "1.2.3.4:5"),
])
def test_target(endpoint: str, name: str) -> None:
    assert target(endpoint) == name


@pytest.mark.parametrize(("code", "name"), [
    (grpc.StatusCode.NOT_FOUND, "NotFound"), (grpc.StatusCode.CANCELLED, "Canceled"),
    (grpc.StatusCode.DEADLINE_EXCEEDED, "DeadlineExceeded"), (grpc.StatusCode.UNKNOWN, "Unknown"),
])
def test_codes_are_named_as_in_go(code: grpc.StatusCode, name: str) -> None:
    assert go_name(code) == name


def test_the_same_error_is_said_once_a_minute() -> None:
    clock = FakeClock()
    once, error = SayOnce(clock), RuntimeCallError("down", method="Status")
    assert once.error(error)
    assert not once.error(error)
    assert once.error(RuntimeCallError("else", method="Status"))
    clock.advance(PERIOD)
    assert once.error(error)


@pytest.mark.parametrize("missing", ["id", "name", "namespace", "uid", "created_at"])
def test_sandbox_status_must_be_complete(missing: str) -> None:
    fields = {"id": "1", "created_at": 1}
    meta = {"name": "a", "namespace": "b", "uid": "c"}
    fields.pop(missing, None)
    meta.pop(missing, None)
    with pytest.raises(RuntimeCallError, match=f"lacks {missing}"):
        convert.sandbox(pb.PodSandboxStatus(metadata=pb.PodSandboxMetadata(**meta), **fields))


def test_container_status_must_name_its_image() -> None:
    status = pb.ContainerStatus(id="1", metadata=pb.ContainerMetadata(name="a"), created_at=1,
                                image=pb.ImageSpec(image="x"))
    with pytest.raises(RuntimeCallError, match="lacks image_ref"):
        convert.container(status)
    status.image_ref = "sha256:1"
    assert convert.container(status).user is None


def test_a_state_of_the_future_is_unknown() -> None:
    assert convert.container_brief(pb.Container(id="1", state=9)).state is State.UNKNOWN  # type: ignore[arg-type]


def test_second_stack_ips() -> None:
    network = pb.PodSandboxNetworkStatus(ip="10.0.0.2", additional_ips=[pb.PodIP(ip="fd00::2")])
    status = pb.PodSandboxStatus(id="1", created_at=1, network=network,
                                 metadata=pb.PodSandboxMetadata(name="a", namespace="b", uid="c"))
    assert convert.sandbox(status).ips == ("10.0.0.2", "fd00::2")


def test_metrics_of_calls() -> None:
    registry = CollectorRegistry()
    metrics = RuntimeMetrics(registry)
    metrics.observe("version", 0.01, True)
    metrics.observe("version", 0.01, False)
    text = generate_latest(registry).decode()
    assert 'kubelet_runtime_operations_total{operation_type="version"} 2.0' in text
    assert 'kubelet_runtime_operations_errors_total{operation_type="version"} 1.0' in text
    assert 'kubelet_runtime_operations_duration_seconds_count{operation_type="version"} 2.0' in text
