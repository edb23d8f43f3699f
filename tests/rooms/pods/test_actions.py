"""What a pod needs: tables, and properties that hold for any snapshot."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubelet_mp.model.containerhash import container_hash
from kubelet_mp.model.runtime import CONTAINER_HASH, Container, PodRuntime, Sandbox, State, newest_first
from kubelet_mp.rooms.pods.actions import PodActions, compute_actions, sandbox_need
from tests.rooms.pods.harness import container, make_pod

BOX = Sandbox("s1", "web", "default", "uid-web", 0, True, 1, ("10.0.0.1",))
PROBE = {"periodSeconds": 10}
DEAD = Sandbox("s1", "web", "default", "uid-web", 0, False, 1)


def instance(name: str = "c", state: State = State.RUNNING, code: int = 0, *, box: str = "s1", at: int = 2,
             reason: str = "", spec: dict[str, Any] | None = None) -> Container:
    return Container(f"{name}{at}", name, 0, state, box, "uid-web", at, exit_code=code, reason=reason,
                     annotations={CONTAINER_HASH: container_hash(spec or container(name))})


def view(*containers: Container, boxes: tuple[Sandbox, ...] = (BOX,)) -> PodRuntime:
    return PodRuntime("uid-web", sandboxes=boxes, containers=newest_first(containers))


def act(pod: dict[str, Any], runtime: PodRuntime, verdicts: dict[tuple[str, str], str] | None = None) -> PodActions:
    return compute_actions(pod, runtime, lambda c, kind: (verdicts or {}).get((c.name, kind), ""))


def names(specs: tuple[Any, ...]) -> list[str]:
    return [s["name"] for s in specs]


@pytest.mark.parametrize(("boxes", "host", "needed", "attempt", "reason"), [
    ((), False, True, 0, "no pod sandbox exists"),
    ((BOX,), False, False, 0, ""),
    ((DEAD,), False, True, 1, "pod sandbox is not ready"),
    ((BOX, Sandbox("s0", "web", "default", "u", 4, True, 0, ("10.0.0.2",))), False, True, 5,
     "multiple pod sandboxes are ready and need to be reconciled"),
    ((BOX,), True, True, 1, "network namespace mode changed and sandbox needs to be recreated"),
    ((Sandbox("s1", "web", "default", "u", 2, True, 1),), False, True, 3, "pod sandbox has no IP address"),
])
def test_when_a_new_sandbox_is_needed(boxes: Any, host: bool, needed: bool, attempt: int, reason: str) -> None:
    need = sandbox_need(make_pod(hostNetwork=host), PodRuntime("u", sandboxes=boxes))
    assert (need.needed, need.attempt, need.reason) == (needed, attempt, reason)


def test_a_new_pod_gets_a_sandbox_and_its_containers() -> None:
    actions = act(make_pod(containers=[container("a"), container("b")]), PodRuntime("u"))
    assert actions.create_sandbox and not actions.kill_pod
    assert names(actions.containers) == ["a", "b"]


def test_with_init_containers_only_the_first_is_started_in_a_new_sandbox() -> None:
    actions = act(make_pod(init=[container("i"), container("j")]), PodRuntime("u"))
    assert names(actions.init) == ["i"] and not actions.containers


@pytest.mark.parametrize(("policy", "code", "create"), [
    ("Always", 0, True), ("OnFailure", 1, True), ("OnFailure", 0, False), ("Never", 1, False)])
def test_a_dead_sandbox_is_replaced_only_for_what_may_run_again(policy: str, code: int, create: bool) -> None:
    actions = act(make_pod(restartPolicy=policy), view(instance(state=State.EXITED, code=code), boxes=(DEAD,)))
    assert actions.create_sandbox is create
    assert actions.attempt == (1 if create else 0)


@pytest.mark.parametrize(("policy", "state", "code", "started"), [
    ("Always", State.EXITED, 0, True), ("OnFailure", State.EXITED, 0, False), ("OnFailure", State.EXITED, 2, True),
    ("Never", State.EXITED, 2, False), ("Never", State.CREATED, 0, True), ("Never", State.UNKNOWN, 0, True)])
def test_which_containers_are_started_again(policy: str, state: State, code: int, started: bool) -> None:
    pod = make_pod(restartPolicy=policy, containers=[container("a"), container("b")])
    actions = act(pod, view(instance("a"), instance("b", state, code)))
    assert names(actions.containers) == (["b"] if started else [])
    assert [k.container.name for k in actions.kill] == (["b"] if state is State.UNKNOWN else [])


@pytest.mark.parametrize(("kind", "policy", "text"), [
    ("liveness", "Always", "Container c failed liveness probe, will be restarted"),
    ("startup", "OnFailure", "Container c failed startup probe, will be restarted"),
    ("liveness", "Never", "Container c failed liveness probe")])
def test_failed_probes_kill(kind: str, policy: str, text: str) -> None:
    pod = make_pod(restartPolicy=policy, containers=[container(**{f"{kind}Probe": PROBE}), container("d")])
    actions = act(pod, view(instance(), instance("d")), {("c", kind): "failure"})
    assert [k.message for k in actions.kill] == [text]
    assert names(actions.containers) == (["c"] if policy != "Never" else [])


def test_a_changed_image_restarts_whatever_the_policy() -> None:
    pod = make_pod(restartPolicy="Never", containers=[container(image="other:1")])
    actions = act(pod, view(instance()))
    assert actions.kill[0].message == "Container c definition changed, will be restarted"
    assert names(actions.containers) == ["c"]


def test_a_finished_pod_is_killed_as_a_whole() -> None:
    actions = act(make_pod(restartPolicy="Never"), view(instance(state=State.EXITED)))
    assert actions.kill_pod and not actions.create_sandbox


def test_restart_rules_beat_the_policy() -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    pod = make_pod(restartPolicy="Never", containers=[container(restartPolicyRules=[rule])])
    assert names(act(pod, view(instance(state=State.EXITED, code=42))).containers) == ["c"]
    assert not act(pod, view(instance(state=State.EXITED, code=1))).containers


# ---- init containers ----


@pytest.mark.parametrize(("first", "started"), [
    (None, ["i"]),
    (instance("i", State.RUNNING), []),
    (instance("i", State.CREATED), ["i"]),
    (instance("i", State.EXITED, 0), ["j"]),
    (instance("i", State.EXITED, 1), ["i"]),
    (instance("i", State.EXITED, 0, reason="OOMKilled"), ["i"]),
])
def test_the_next_init_container(first: Container | None, started: list[str]) -> None:
    pod = make_pod(init=[container("i"), container("j")])
    actions = act(pod, view(*([first] if first else [])))
    assert names(actions.init) == started and not actions.containers and not actions.kill_pod


def test_after_the_last_init_container_the_others_start() -> None:
    pod = make_pod(init=[container("i")])
    assert names(act(pod, view(instance("i", State.EXITED))).containers) == ["c"]


def test_a_failed_init_container_of_a_pod_that_never_restarts_ends_it() -> None:
    pod = make_pod(init=[container("i")], restartPolicy="Never")
    actions = act(pod, view(instance("i", State.EXITED, 1)))
    assert actions.kill_pod and actions.idle is False and not actions.init


def test_an_init_container_that_was_removed_is_not_run_again_under_a_running_pod() -> None:
    assert act(make_pod(init=[container("i")]), view(instance())).idle


def test_instances_of_an_older_sandbox_do_not_count_as_init_done() -> None:
    box = Sandbox("s2", "web", "default", "u", 1, True, 5, ("10.0.0.3",))
    pod = make_pod(init=[container("i")])
    old = [instance("i", State.EXITED), instance("c", State.EXITED, 137)]
    actions = act(pod, view(*old, boxes=(box, DEAD)))
    assert names(actions.init) == ["i"] and not actions.containers


def test_older_init_instances_are_pruned() -> None:
    pod = make_pod(init=[container("i")])
    actions = act(pod, view(instance("i", State.EXITED, 1, at=2), instance("i", State.EXITED, 1, at=3)))
    assert [c.id for c in actions.prune_init] == ["i2"]


SIDE = container("side", restartPolicy="Always")


def test_a_started_sidecar_lets_the_next_begin_and_is_kept() -> None:
    pod = make_pod(init=[SIDE, container("j")])
    assert names(act(pod, view(instance("side"))).init) == ["j"]
    probed = make_pod(init=[{**SIDE, "startupProbe": PROBE}, container("j")])
    assert act(probed, view(instance("side"))).idle
    assert names(act(probed, view(instance("side")), {("side", "startup"): "success"}).init) == ["j"]


def test_a_sidecar_restarts_even_in_a_pod_that_never_does() -> None:
    pod = make_pod(init=[SIDE], restartPolicy="Never")
    actions = act(pod, view(instance("side", State.EXITED, 1), instance()))
    assert names(actions.init) == ["side"] and not actions.containers
    missing = act(pod, view(instance()))
    assert names(missing.init) == ["side"]


def test_a_sidecar_fails_its_probe() -> None:
    pod = make_pod(init=[{**SIDE, "livenessProbe": PROBE}])
    actions = act(pod, view(instance("side"), instance()), {("side", "liveness"): "failure"})
    assert [k.message for k in actions.kill] == ["Init container side failed liveness probe"]
    assert names(actions.init) == ["side"]


# ---- properties ----

_states = st.sampled_from(list(State))
_instances = st.lists(st.builds(
    lambda name, state, code, box, at: instance(name, state, code, box=box, at=at),
    st.sampled_from(["i", "side", "c", "d"]), _states, st.sampled_from([0, 1, 137]), st.sampled_from(["s1", "s2"]),
    st.integers(2, 99)), max_size=8, unique_by=lambda c: c.id)
_boxes = st.lists(st.builds(
    lambda n, ready: Sandbox(f"s{n}", "web", "default", "u", n, ready, n, ("10.0.0.1",) if ready else ()),
    st.integers(1, 2), st.booleans()), max_size=2, unique_by=lambda s: s.id)
_pods = st.builds(
    lambda policy, init: make_pod(restartPolicy=policy, containers=[container("c"), container("d")],
                                  init=[container("i"), SIDE] if init else None),
    st.sampled_from(["Always", "OnFailure", "Never"]), st.booleans())


@settings(max_examples=300, deadline=None)
@given(_pods, _instances, _boxes)
def test_no_snapshot_leads_to_two_of_a_kind(pod: dict[str, Any], containers: Any, boxes: Any) -> None:
    runtime = view(*containers, boxes=tuple(sorted(boxes, key=lambda s: -s.created_at)))
    actions = act(pod, runtime)
    started = names((*actions.init, *actions.containers))
    assert len(started) == len(set(started))
    killed = {k.container.id for k in actions.kill}
    for name in started:
        running = [c for c in runtime.instances(name)[:1] if c.state is State.RUNNING and c.id not in killed]
        assert not running or actions.create_sandbox or running[0].sandbox_id != runtime.sandboxes[0].id
    if actions.containers and pod["spec"].get("initContainers"):
        assert not actions.create_sandbox
    if actions.create_sandbox and runtime.sandboxes:
        assert actions.attempt > max(s.attempt for s in runtime.sandboxes)


@settings(max_examples=200, deadline=None)
@given(_pods, _instances, _boxes)
def test_a_pod_that_is_deleted_gets_nothing_new(pod: dict[str, Any], containers: Any, boxes: Any) -> None:
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    actions = act(pod, view(*containers, boxes=tuple(boxes)))
    assert not (actions.create_sandbox or actions.init or actions.containers)


def with_ephemeral(*names_: str, **fields: Any) -> dict[str, Any]:
    pod = make_pod(**fields)
    pod["spec"]["ephemeralContainers"] = [container(name) for name in names_]
    return pod


def test_an_ephemeral_container_is_started_once_in_the_sandbox_that_is_there() -> None:
    pod = with_ephemeral("debug", "more", init=[container("i")])
    actions = act(pod, view(instance("i"), instance("debug", State.EXITED, 1)))
    assert names(actions.ephemeral) == ["more"]  # before the pod is initialised, too
    assert not actions.idle and names(actions.starts) == ["more"]


def test_an_ephemeral_container_keeps_no_pod_alive_and_waits_for_no_new_sandbox() -> None:
    pod = with_ephemeral("debug", restartPolicy="Never")
    assert not act(pod, PodRuntime("u")).ephemeral
    assert act(pod, view(instance(state=State.EXITED), instance("debug"))).kill_pod
    pod["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z"
    assert not act(pod, view(instance())).ephemeral
