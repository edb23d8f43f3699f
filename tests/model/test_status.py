"""The status of pods as tables: what the runtime says and what was known → what is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.phase import phase
from kubelet_mp.model.restartpolicy import restarts_after
from kubelet_mp.model.runtime import Container, PodRuntime, Sandbox, State
from kubelet_mp.model.status import StatusInputs, compute_status, finish_status

NOW = "2026-01-01T00:00:00Z"


def pod(policy="Always", containers=("c",), init=(), source="file", **spec):
    return {
        "metadata": {"name": "web", "namespace": "default", "uid": "u1",
                     "annotations": {"kubernetes.io/config.source": source}},
        "spec": {"restartPolicy": policy,
                 "containers": [c if isinstance(c, dict) else {"name": c, "image": "i"} for c in containers],
                 "initContainers": [c if isinstance(c, dict) else {"name": c, "image": "i"} for c in init], **spec},
    }


def box(ready=True, ip="10.0.0.2"):
    return Sandbox("s1", "web", "default", "u1", 0, ready, 1, (ip,) if ip else ())


def made(name, state=State.RUNNING, code=0, attempt=0, reason="", serial=0):
    ended = state is State.EXITED
    return Container(f"{name}{attempt}", name, attempt, state, "s1", "u1", 10 + attempt + serial, 20,
                     30 if ended else 0, code, reason or (("Error" if code else "Completed") if ended else ""),
                     image="i", image_ref="sha256:1")


def seen(*containers, sandbox=None):
    newest = tuple(sorted(containers, key=lambda c: c.created_at, reverse=True))
    return PodRuntime("u1", "web", "default", (sandbox or box(),), newest, ("10.0.0.2",))


def status(p, runtime, **inputs):
    return compute_status(p, runtime, StatusInputs(now=NOW, **inputs))


def one(s, name="c", key="containerStatuses"):
    return next(c for c in s[key] if c["name"] == name)


def condition(s, name):
    return next(c for c in s["conditions"] if c["type"] == name)


def test_a_running_pod():
    s = status(pod(), seen(made("c")))
    assert s["phase"] == "Running" and s["podIP"] == "10.0.0.2" and s["qosClass"] == "BestEffort"
    assert one(s)["containerID"] == "containerd://c0" and one(s)["ready"] and one(s)["started"]
    assert one(s)["imageID"] == "sha256:1"
    assert [c["status"] for c in s["conditions"]] == ["True"] * 5


def test_a_pod_nobody_started_waits():
    s = status(pod(), PodRuntime("u1"), sandbox_problem="no pod sandbox exists")
    assert s["phase"] == "Pending"
    assert one(s)["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert condition(s, "PodReadyToStartContainers")["message"] == "no pod sandbox exists"
    assert condition(s, "Ready")["message"] == "containers with unready status: [c]"


def test_with_init_containers_all_wait_with_pod_initializing():
    s = status(pod(init=("i",)), PodRuntime("u1"))
    assert one(s)["state"]["waiting"]["reason"] == "PodInitializing"
    assert one(s, "i", "initContainerStatuses")["state"]["waiting"]["reason"] == "PodInitializing"
    assert condition(s, "Initialized")["reason"] == "ContainersNotInitialized"
    assert condition(s, "Initialized")["message"] == "containers with incomplete status: [i]"


def test_a_crash_loop_names_its_delay_and_keeps_the_exit():
    reasons = {"c": ("CrashLoopBackOff", "back-off 10s restarting failed container=c pod=web_default(u1)")}
    s = status(pod(), seen(made("c", State.EXITED, 3, attempt=1)), reasons=reasons)
    assert s["phase"] == "Running" and not one(s)["ready"] and one(s)["restartCount"] == 1
    assert one(s)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert one(s)["lastState"]["terminated"]["exitCode"] == 3
    assert one(s)["lastState"]["terminated"]["reason"] == "Error"


def test_without_a_reason_the_end_stays_visible():
    s = status(pod(), seen(made("c", State.EXITED, 3)))
    assert one(s)["state"]["terminated"]["exitCode"] == 3 and s["phase"] == "Running"


def test_the_last_state_survives_the_removal_of_the_dead_instance():
    first = status(pod(), seen(made("c", State.EXITED, 3)))
    s = status(pod(), seen(made("c", attempt=1)), previous=first)
    assert one(s)["lastState"]["terminated"]["exitCode"] == 3
    again = status(pod(), seen(made("c", attempt=1)), previous=s)
    assert one(again)["lastState"]["terminated"]["exitCode"] == 3


def test_an_image_fault_is_a_waiting_reason_and_the_pod_stays_pending():
    reasons = {"gone": ("ImagePullBackOff", 'Back-off pulling image "x"')}
    s = status(pod("Never", ("ok", "gone")), seen(made("ok")), reasons=reasons)
    assert s["phase"] == "Pending"
    assert one(s, "gone")["state"]["waiting"]["reason"] == "ImagePullBackOff"


def test_an_init_container_that_the_runtime_forgot_is_completed():
    first = status(pod(init=("i",)), seen(made("i", State.EXITED), made("c", serial=1)))
    s = status(pod(init=("i",)), seen(made("c")), previous=first)
    ended = one(s, "i", "initContainerStatuses")["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("Completed", 0)
    fresh = status(pod(init=("i",)), seen(made("c")))
    ended = one(fresh, "i", "initContainerStatuses")["state"]["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("Completed", 0)


def test_an_init_container_with_an_oom_killed_child_failed():
    s = status(pod(init=("i",)), seen(made("i", State.EXITED, 0, reason="OOMKilled")))
    assert s["phase"] == "Pending" and not one(s, "i", "initContainerStatuses")["ready"]
    s = status(pod("Never", init=("i",)), seen(made("i", State.EXITED, 0, reason="OOMKilled")))
    assert s["phase"] == "Failed"


def test_a_running_container_that_vanished_left_a_last_state():
    first = status(pod(), seen(made("c")))
    s = status(pod(), seen(), previous=first)
    assert one(s)["lastState"]["terminated"]["reason"] == "ContainerStatusUnknown"
    assert one(s)["restartCount"] == 1
    assert one(status(pod(), seen(), previous=first, deleting=True))["restartCount"] == 0


def test_a_container_that_only_seemed_lost_has_no_end_behind_it():
    """The runtime showed nothing for a while, and then the same container as before."""
    before = status(pod(), seen(made("c")))
    gone = status(pod(), PodRuntime("u1"), previous=before)
    assert one(gone)["restartCount"] == 1 and one(gone)["lastState"]["terminated"]["containerID"] == "containerd://c0"
    back = status(pod(), seen(made("c")), previous=gone)
    assert (one(back)["restartCount"], one(back)["lastState"]) == (0, {}) and "running" in one(back)["state"]


def test_readiness_and_startup_probes_gate():
    c = {"name": "c", "image": "i", "readinessProbe": {}, "startupProbe": {}}
    p = pod(containers=(c,))
    assert not one(status(p, seen(made("c"))))["started"]
    s = status(p, seen(made("c")), probes={("c0", "startup"): "success"})
    assert one(s)["started"] and not one(s)["ready"]
    s = status(p, seen(made("c")), probes={("c0", "startup"): "success", ("c0", "readiness"): "success"})
    assert one(s)["ready"] and condition(s, "Ready")["status"] == "True"


def test_what_a_probe_said_of_an_instance_stands_until_it_is_probed_again():
    p = pod(containers=({"name": "c", "image": "i", "readinessProbe": {}},))
    first = status(p, seen(made("c")), probes={("c0", "readiness"): "success"})
    assert one(status(p, seen(made("c")), previous=first))["ready"]
    assert not one(status(p, seen(made("c")), previous=first, probes={("c0", "readiness"): "failure"}))["ready"]
    assert not one(status(p, seen(made("c", attempt=1)), previous=first))["ready"]


def test_readiness_gates():
    p = pod(readinessGates=[{"conditionType": "example.com/x"}])
    s = status(p, seen(made("c")))
    assert condition(s, "Ready")["message"] == (
        'corresponding condition of pod readiness gate "example.com/x" does not exist.')
    foreign = {"conditions": [{"type": "example.com/x", "status": "True"}]}
    s = status(p, seen(made("c")), previous=foreign)
    assert condition(s, "Ready")["status"] == "True" and condition(s, "example.com/x")["status"] == "True"


def test_a_transition_time_moves_only_with_its_status():
    first = compute_status(pod(), seen(made("c")), StatusInputs(now="2025-01-01T00:00:00Z"))
    s = status(pod(), seen(made("c")), previous=first)
    assert condition(s, "Ready")["lastTransitionTime"] == "2025-01-01T00:00:00Z"
    s = status(pod(), seen(made("c", State.EXITED, 1)), previous=first)
    assert condition(s, "Ready")["lastTransitionTime"] == NOW
    assert s["startTime"] == first["startTime"]


def test_a_terminal_phase_never_reverts():
    assert status(pod(), seen(made("c")), previous={"phase": "Failed", "reason": "Evicted"})["reason"] == "Evicted"


def test_a_rejected_pod_says_why():
    s = status(pod(), PodRuntime("u1"), override=("Failed", "OutOfcpu", "Pod was rejected: no"))
    assert (s["phase"], s["reason"], s["message"]) == ("Failed", "OutOfcpu", "Pod was rejected: no")


def test_the_budget_of_termination_messages():
    s = status(pod(), seen(made("c", State.EXITED, 1)), messages={"c0": "x" * 20000})
    assert len(one(s)["state"]["terminated"]["message"]) == 12 * 1024


@pytest.mark.parametrize("codes, policy, expected", [
    ((0, 0), "Never", "Succeeded"), ((0, 1), "Never", "Failed"), ((0, 0), "OnFailure", "Succeeded"),
    ((0, 1), "OnFailure", "Running"), ((0, 0), "Always", "Running"),
])
def test_phases_of_stopped_pods(codes, policy, expected):
    names = [f"c{i}" for i in range(len(codes))]
    statuses = {n: {"state": {"terminated": {"exitCode": code}}} for n, code in zip(names, codes, strict=True)}
    assert phase(pod(policy, names), statuses) == expected


def test_a_finished_pod_shows_nothing_as_running():
    s = finish_status(pod(), status(pod(), seen(made("c"))), NOW)
    assert s["phase"] == "Failed" and one(s)["state"]["terminated"]["exitCode"] == 137
    assert condition(s, "Ready")["status"] == "False"
    s = finish_status(pod(), status(pod("Never"), seen(made("c", State.EXITED))), NOW)
    assert s["phase"] == "Succeeded"


@pytest.mark.parametrize("container, code, expected", [
    ({}, 0, True),
    ({"restartPolicy": "Never"}, 1, False),
    ({"restartPolicy": "Never", "restartPolicyRules": [
        {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]}, 42, True),
    ({"restartPolicy": "Never", "restartPolicyRules": [
        {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [42]}}]}, 42, False),
])
def test_rules_beat_the_policy(container, code, expected):
    assert restarts_after(pod("Always"), container, code) is expected


@given(st.sampled_from(["Always", "OnFailure", "Never"]), st.lists(st.sampled_from([
    {"running": {}}, {"waiting": {}}, {"terminated": {"exitCode": 0}}, {"terminated": {"exitCode": 1}}]), min_size=1,
    max_size=3), st.booleans())
def test_every_combination_has_a_phase_and_waiting_means_pending(policy, states, terminal):
    names = [f"c{i}" for i in range(len(states))]
    result = phase(pod(policy, names), {n: {"state": s} for n, s in zip(names, states, strict=True)}, terminal=terminal)
    assert result in ("Pending", "Running", "Succeeded", "Failed")
    if {"waiting": {}} in states:
        assert result == "Pending"


def test_an_ephemeral_container_is_shown_apart_and_counts_for_nothing():
    p = pod(ephemeralContainers=[{"name": "debug", "image": "i"}, {"name": "late", "image": "i"}])
    reasons = {"late": ("ErrImagePull", "no such image")}
    s = status(p, seen(made("c"), made("debug", State.EXITED, 3)), reasons=reasons)
    debug, late = s["ephemeralContainerStatuses"]
    assert debug["state"]["terminated"]["exitCode"] == 3 and not debug["ready"] and "started" not in debug
    assert late["state"] == {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    assert s["phase"] == "Running" and condition(s, "Ready")["status"] == "True"
    done = finish_status(p, status(p, seen(made("c"), made("debug")), previous=s), NOW)
    debug, late = done["ephemeralContainerStatuses"]
    assert debug["state"]["terminated"]["reason"] == "ContainerStatusUnknown" and "waiting" in late["state"]
