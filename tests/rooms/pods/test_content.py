"""Environment and pull secrets that come from an API server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubelet_mp.errors import ApiError, ContainerConfigError
from kubelet_mp.rooms.lateapi import LateApi
from kubelet_mp.rooms.pods.content import PodContent
from kubelet_mp.rooms.pods.services import Services
from kubelet_mp.rooms.timers import Timers
from tests.fakes.api import FakeApi
from tests.fakes.cri import FakeCRI
from tests.rooms.pods.harness import World, api_pod, container, make_pod
from tests.support import FakeClock, wait_until

BASE = "/api/v1/namespaces/default"
PRIVATE = "registry.example/team/app:1"


def coded(text: str | bytes) -> str:
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def ref(kind: str, name: str, key: str, **more: Any) -> dict[str, Any]:
    return {"valueFrom": {f"{kind}KeyRef": {"name": name, "key": key, **more}}}


def service(name: str, namespace: str = "default", ip: str = "10.0.0.9") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace, "labels": {}},
            "spec": {"clusterIP": ip, "ports": [{"port": 80, "targetPort": 8080}], "selector": {"a": "b"}}}


@pytest.fixture
def world(fake: FakeCRI, tmp_path: Path) -> Iterator[World]:
    with World(fake, tmp_path, api=True) as made:
        yield made


def variables(fake: FakeCRI) -> dict[str, str]:
    [request] = fake.requests("CreateContainer")
    return {env.key: env.value for env in request.config.envs}


def test_values_come_from_config_maps_and_secrets(world: World, fake: FakeCRI) -> None:
    world.api.objects.update({
        f"{BASE}/configmaps/plain": {"data": {"k": "1", "other": "2"}},
        f"{BASE}/secrets/hidden": {"data": {"k": coded("geheim"), "binary": coded(b"\xff\0")}},
    })
    env = [{"name": "A", **ref("configMap", "plain", "k")}, {"name": "B", **ref("secret", "hidden", "k")},
           {"name": "C", **ref("configMap", "none", "k", optional=True)},
           {"name": "D", **ref("secret", "hidden", "none", optional=True)}, {"name": "E", "value": "$(P_k)-$(A)"}]
    from_all = [{"prefix": "P_", "configMapRef": {"name": "plain"}},
                {"secretRef": {"name": "none", "optional": True}}]
    pod = api_pod(containers=[container(env=env, envFrom=from_all)])
    world.want(pod)
    world.until_running(pod)
    assert variables(fake) == {"P_k": "1", "P_other": "2", "A": "1", "B": "geheim", "E": "1-1"}


@pytest.mark.parametrize(("variable", "text", "path", "found"), [
    (ref("configMap", "x", "k"), 'configmap "x" not found', "configmaps/x", {"data": {"k": "1"}}),
    (ref("secret", "x", "k"), 'secret "x" not found', "secrets/x", {"data": {"k": coded("1")}}),
])  # fmt: skip
def test_a_missing_object_is_waited_for(world: World, fake: FakeCRI, variable: dict[str, Any], text: str, path: str,
                                        found: dict[str, Any]) -> None:
    pod = api_pod(containers=[container(env=[{"name": "A", **variable}])])
    world.want(pod)
    world.until(lambda: world.waiting(pod).get("message"), "it to wait")
    assert world.waiting(pod) == {"reason": "CreateContainerConfigError", "message": text}
    assert [(e.type, e.reason, e.message) for e in world.events("Failed")] == [("Warning", "Failed", f"Error: {text}")]
    world.api.objects[f"{BASE}/{path}"] = found
    world.advance(4.6)
    world.until_running(pod)
    assert variables(fake) == {"A": "1"}


def test_a_missing_key_is_named(world: World) -> None:
    world.api.objects[f"{BASE}/configmaps/x"] = {"data": {}}
    pod = api_pod(containers=[container(env=[{"name": "A", **ref("configMap", "x", "k")}])])
    world.want(pod)
    world.until(lambda: world.waiting(pod).get("message"), "it to wait")
    assert world.waiting(pod)["message"] == "couldn't find key k in ConfigMap default/x"


def test_containers_restart_while_the_server_is_away(world: World, fake: FakeCRI) -> None:
    world.api.objects[f"{BASE}/configmaps/x"] = {"data": {"k": "1"}}
    pod = api_pod(containers=[container(env=[{"name": "A", **ref("configMap", "x", "k")}])])
    world.want(pod)
    world.until_running(pod)
    world.api.away = True
    world.advance(30)
    fake.exit_container("c", 1)
    world.until(lambda: world.waiting(pod) or world.container(pod).get("restartCount"), "the end to be seen")
    world.advance(15)
    world.until_running(pod, restarts=1)
    room = world.runner.room
    assert room.env.content._read
    world.drop(pod)
    world.until(lambda: world.forgotten(pod), "it to be forgotten")
    assert room.env.content._read == {}


def test_what_is_refused_or_no_text_is_said() -> None:
    objects: dict[str, Any] = {f"{BASE}/secrets/s": {"data": {"good": coded("1"), "bad": coded(b"\xff")}}}

    def get(path: str) -> dict[str, Any]:
        if isinstance(objects[path], ApiError):
            raise objects[path]
        return objects[path]  # type: ignore[no-any-return]

    clock = FakeClock()
    content = PodContent(get, clock.monotonic, Services())
    found = content.lookup("u").secret("default", "s")
    assert found is not None and found["good"] == "1" and sorted(found) == ["bad", "good"] and "none" not in found
    with pytest.raises(ContainerConfigError, match="value of key bad in Secret default/s is not UTF-8"):
        dict(found)
    clock.advance(3)
    objects[f"{BASE}/secrets/s"] = ApiError("no relationship found", status=403)
    lookup = content.lookup("u")
    with pytest.raises(ContainerConfigError, match="no relationship found"):
        lookup.secret("default", "s")
    assert lookup.asked
    clock.advance(3)
    objects[f"{BASE}/secrets/s"] = ApiError("no answer")
    again = content.lookup("u").secret("default", "s")
    assert again is not None and again["good"] == "1"
    with pytest.raises(ContainerConfigError, match="no answer"):
        content.lookup("other").secret("default", "s")


# ---- services ----


def test_services_are_followed_and_trimmed() -> None:
    with FakeApi() as api:
        api.add(service("front"))
        api.add(service("kubernetes"))
        api.add(service("far", "other"))
        services, crashes = Services(), list[BaseException]()
        assert services.of("default") is None
        services.watch(LateApi(api.kube), Timers(FakeClock().monotonic), crashes.append)
        first = services.of("default", 5.0)
        assert first is not None and sorted(s["metadata"]["name"] for s in first) == ["front", "kubernetes"]
        assert first[0]["spec"] == {"clusterIP": "10.0.0.9", "ports": [{"port": 80}]}
        assert [s["metadata"]["name"] for s in services.of("other") or ()] == ["far", "kubernetes"]
        assert [s["metadata"]["name"] for s in services.of("third") or ()] == ["kubernetes"]
        wait_until(lambda: api.watches == 1)
        api.add(service("new", "third"))
        wait_until(lambda: len(services.of("third") or ()) == 2)
        api.remove("/api/v1/namespaces/third/services/new")
        wait_until(lambda: len(services.of("third") or ()) == 1)
        services.close()
        assert crashes == []


def test_a_pod_waits_until_services_were_listed(fake: FakeCRI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubelet_mp.rooms.pods.start.SERVICES_PATIENCE", 0.05)
    with FakeApi() as api, World(fake, tmp_path, api=True) as world:
        room = world.runner.room
        world.runner.run_here(lambda: setattr(room.env.content, "services", Services()))
        pod, fixed = api_pod(), make_pod("fixed", "uid-fixed")
        world.want(pod, fixed)
        world.until_running(fixed)
        world.until(lambda: world.waiting(pod).get("message"), "it to wait")
        assert world.waiting(pod)["message"] == (
            "services have not yet been read at least once, cannot construct envvars")
        api.add(service("front"))
        room.env.content.services.watch(LateApi(api.kube), Timers(world.clock.monotonic), lambda error: None)
        room.env.content.services.of("default", 5.0)
        world.advance(4.6)
        world.until_running(pod)
        envs = {e.key: e.value for e in fake.requests("CreateContainer")[-1].config.envs}
        assert envs["FRONT_SERVICE_HOST"] == "10.0.0.9" and envs["FRONT_SERVICE_PORT"] == "80"
        room.env.content.close()


# ---- image pull secrets ----


def pull_secret(**auths: dict[str, str]) -> dict[str, Any]:
    text = json.dumps({"auths": {host.replace("_", "."): auth for host, auth in auths.items()}})
    return {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": coded(text)}}


def test_the_fitting_credentials_go_with_the_pull(world: World, fake: FakeCRI) -> None:
    fake.add_to_registry(PRIVATE)
    joe = {"username": "joe", "password": "x"}
    world.api.objects[f"{BASE}/secrets/pull"] = pull_secret(registry_example=joe, other_example={"username": "no"})
    pod = api_pod(containers=[container(image=PRIVATE)], imagePullSecrets=[{"name": "pull"}, {"name": ""}])
    world.want(pod)
    world.until_running(pod)
    [request] = fake.requests("PullImage")
    assert (request.image.image, request.auth.username, request.auth.password) == (PRIVATE, "joe", "x")
    assert not world.events("FailedToRetrieveImagePullSecret")


def test_missing_secrets_are_told_when_the_pull_fails(world: World, fake: FakeCRI) -> None:
    pod = api_pod(containers=[container(image=PRIVATE)], imagePullSecrets=[{"name": "a"}, {"name": "b"}])
    world.want(pod)
    world.until(lambda: world.events("FailedToRetrieveImagePullSecret"), "the event")
    assert world.events("FailedToRetrieveImagePullSecret")[0].message == (
        "Unable to retrieve some image pull secrets (a, b); attempting to pull the image may not succeed.")
