"""Errors keep their message, their fix and their problems, also through pickle."""

import pickle

from kubelet_mp.errors import ApiError, ConfigError, RuntimeCallError, StartError


def test_fix_is_part_of_the_text_but_not_of_the_message() -> None:
    error = StartError("port 10250 is taken", "stop its owner")
    assert str(error) == "port 10250 is taken (fix: stop its owner)"
    assert error.message == "port 10250 is taken"


def test_aggregate_keeps_every_problem() -> None:
    error = ConfigError.aggregate("refused", ["a: x", "b: y"])
    assert error.problems == ("a: x", "b: y")
    assert str(error).splitlines() == ["refused:", "  a: x", "  b: y"]


def test_errors_survive_pickle() -> None:
    call = pickle.loads(pickle.dumps(RuntimeCallError("gone", "wait", method="Version", code="UNAVAILABLE")))
    assert (call.message, call.fix, call.method, call.code) == ("gone", "wait", "Version", "UNAVAILABLE")
    assert pickle.loads(pickle.dumps(ApiError("no", status=404))).status == 404


def test_what_an_api_error_tells_apart() -> None:
    taken = pickle.loads(pickle.dumps(ApiError("x", status=409, reason="AlreadyExists", retry_after=2.0)))
    assert taken.already_exists and not taken.conflict and taken.retry_after == 2.0
    assert ApiError("x", status=409, reason="Conflict").conflict
    assert ApiError("x", status=404).not_found and ApiError("x", status=410).gone
    assert ApiError("x", status=403).forbidden and not ApiError("x").forbidden
