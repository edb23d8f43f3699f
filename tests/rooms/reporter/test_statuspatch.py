"""What is written of a pod's status."""

from kubelet_mp.rooms.reporter.statuspatch import patch, told


def condition(kind, status="True", **more):
    return {"type": kind, "status": status, **more}


def test_nothing_to_write():
    have = {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "message": None,
            "conditions": [condition("Ready", lastProbeTime=None, lastTransitionTime="t1")]}
    want = {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}],
            "conditions": [condition("Ready", lastTransitionTime="t2")]}
    assert patch(want, have) == {}


def test_a_transition_that_was_told_keeps_its_time():
    have = {"conditions": [condition("Ready", lastTransitionTime="t1")]}
    want = {"conditions": [condition("Ready", reason="New", lastTransitionTime="t2")]}
    assert patch(want, have) == {"conditions": [condition("Ready", reason="New", lastTransitionTime="t1")]}
    turned = {"conditions": [condition("Ready", "False", lastTransitionTime="t2")]}
    assert patch(turned, have) == turned


def test_what_a_condition_no_longer_says_is_taken_away():
    have = {"conditions": [condition("Ready", "False", reason="ContainersNotReady", message="m")]}
    assert patch({"conditions": [condition("Ready")]}, have) == {
        "conditions": [condition("Ready", reason=None, message=None)]}


def test_conditions_of_others_stay_and_our_own_go():
    have = {"conditions": [condition("Ready"), condition("example.com/gate"), condition("PodResizePending")]}
    assert patch({"conditions": [condition("Ready")]}, have) == {
        "conditions": [{"$patch": "delete", "type": "PodResizePending"}]}


def test_fields_that_end_and_lists_that_must_not_be_merged():
    have = {"message": "m", "podIPs": [{"ip": "10.0.0.1"}], "resourceClaimStatuses": [1], "nominatedNodeName": "n"}
    want = {"podIPs": [{"ip": "10.0.0.2"}], "hostIPs": [{"ip": "192.0.2.1"}]}
    assert patch(want, have) == {
        "podIPs": [{"$patch": "replace"}, {"ip": "10.0.0.2"}], "hostIPs": [{"ip": "192.0.2.1"}], "message": None}


def test_a_terminal_phase_waits_for_the_last_container():
    want = {"phase": "Failed", "reason": "Evicted", "message": "m",
            "conditions": [condition("DisruptionTarget"), condition("Ready", "False")]}
    assert told(want, {"phase": "Running"}, terminal=False) == {
        "phase": "Running", "conditions": [condition("Ready", "False")]}
    assert told(want, {"phase": "Running"}, terminal=True) == want


def test_a_terminal_phase_never_goes_back_and_a_generation_never_falls():
    shown = told({"phase": "Running", "observedGeneration": 1}, {"phase": "Failed", "observedGeneration": 2}, False)
    assert shown == {"phase": "Failed", "observedGeneration": 2}


def test_a_phase_that_is_withheld_leaves_what_was_said_of_the_old_one():
    have = {"phase": "Running", "reason": "R", "message": "m"}
    assert told({"phase": "Failed", "reason": "Evicted"}, have, terminal=False) == have
    assert told({"phase": "Running"}, {"phase": "Failed", "reason": "Evicted"}, True) == {
        "phase": "Failed", "reason": "Evicted"}


def test_the_mirror_of_a_pod_that_was_rejected_and_then_admitted():
    assert told({"phase": "Running"}, {"phase": "Failed", "reason": "OutOfcpu"}, False, static=True) == {
        "phase": "Running"}


def test_what_others_own_is_never_written_back_as_it_once_was():
    want = {"phase": "Running", "resourceClaimStatuses": [], "nominatedNodeName": "old",
            "conditions": [condition("Ready"), condition("example.com/gate", "False"), condition("DisruptionTarget")]}
    have = {"phase": "Running", "resourceClaimStatuses": [{"name": "c"}],
            "conditions": [condition("example.com/gate"), condition("DisruptionTarget", reason="Other")]}
    assert patch(told(want, have, False), have) == {"conditions": [condition("Ready")]}


def test_an_instance_that_ended_does_not_run_again():
    ended = {"name": "c", "containerID": "x://1", "state": {"terminated": {"exitCode": 1}}}
    running = {"name": "c", "containerID": "x://1", "state": {"running": {}}}
    again = {"name": "c", "containerID": "x://2", "state": {"running": {}}}
    waits = {"name": "c", "containerID": "x://1", "state": {"waiting": {}}, "lastState": ended["state"]}
    have = {"phase": "Running", "containerStatuses": [ended]}
    for want, shown in ((running, ended), (again, again), (waits, waits)):
        assert told({"phase": "Running", "containerStatuses": [want]}, have, False)["containerStatuses"] == [shown]


def test_addresses_once_told_stay():
    assert patch({"phase": "Running"}, {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}) == {}
