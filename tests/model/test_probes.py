import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.probes import FAILURE, SUCCESS, Outcome, Probe, count, http_request, port_number, probes_of, start


def run(probe, outcomes):
    tally = start(probe.kind)
    results = []
    for ok in outcomes:
        tally = count(probe, tally, Outcome(ok))
        results.append(tally.result)
    return tally, results


def test_a_readiness_probe_needs_its_thresholds_in_a_row():
    probe = Probe("readiness", {}, success_threshold=2, failure_threshold=3)
    _, results = run(probe, [True, False, True, True, False, False, True, False, False, False])
    assert results == [FAILURE] * 3 + [SUCCESS] * 6 + [FAILURE]


def test_liveness_stops_at_its_verdict_and_startup_at_its_success():
    tally, _ = run(Probe("liveness", {}, failure_threshold=2), [True, False, False, True])
    assert tally.final and tally.result == FAILURE
    tally, _ = run(Probe("startup", {}), [False, True, False])
    assert tally.final and tally.result == SUCCESS


@given(st.lists(st.booleans()), st.integers(1, 4), st.integers(1, 4))
def test_the_result_is_that_of_the_last_run_that_was_long_enough(outcomes, success, failure):
    probe = Probe("readiness", {}, success_threshold=success, failure_threshold=failure)
    expected, run_length, last = FAILURE, 0, None
    for ok in outcomes:
        run_length, last = (run_length + 1 if ok is last else 1), ok
        if run_length >= (success if ok else failure):
            expected = SUCCESS if ok else FAILURE
    assert run(probe, outcomes)[0].result == expected


def test_an_error_proves_nothing():
    probe = Probe("liveness", {}, failure_threshold=1)
    assert count(probe, start("liveness"), Outcome(False, errored=True)) == start("liveness")


def test_defaults():
    probe, = probes_of({"livenessProbe": {"tcpSocket": {"port": 80}}})
    assert (probe.initial_delay, probe.timeout, probe.period, probe.success_threshold,
            probe.failure_threshold) == (0, 1, 10, 1, 3)


def test_headers_as_given_and_as_defaulted():
    c = {"name": "c", "ports": [{"name": "web", "containerPort": 8083}]}
    url, headers = http_request(c, {"path": "/check?a=1&b=%20x", "port": "web", "httpHeaders": [
        {"name": "host", "value": "web.example.invalid"}, {"name": "X-Trace", "value": "one"},
        {"name": "X-Trace", "value": "two"}]}, "10.0.0.1")
    assert url == "http://10.0.0.1:8083/check?a=1&b=%20x"
    assert headers == [("User-Agent", "kube-probe/1.37"), ("Accept", "*/*"), ("Host", "web.example.invalid"),
                       ("X-Trace", "one"), ("X-Trace", "two")]
    _, headers = http_request(c, {"port": 80, "httpHeaders": [{"name": "user-agent", "value": ""}]}, "::1")
    assert headers == [("Accept", "*/*")]


def test_a_port_that_does_not_exist():
    with pytest.raises(ValueError, match="invalid port"):
        port_number({"name": "c"}, "nope")
