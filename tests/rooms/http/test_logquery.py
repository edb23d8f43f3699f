"""The decisions of /containerLogs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.host.logfiles import LogOptions
from kubelet_mp.rooms.http.logquery import LogRequestError, choose, has_container, is_running, options

NOW = 1_704_164_645_000_000_000


def ask(**query: str) -> LogOptions:
    return options({name: [value] for name, value in query.items()}, NOW)[0]


def refused(**query: str) -> int:
    with pytest.raises(LogRequestError) as caught:
        ask(**query)
    return caught.value.status


def test_nothing_asked_is_everything() -> None:
    assert options({}, NOW) == (LogOptions(), False)


def test_all_parameters() -> None:
    asked = {"tailLines": ["3"], "limitBytes": ["9"], "timestamps": ["true"], "follow": ["1"], "previous": ["yes"],
             "sinceSeconds": ["60"], "insecureSkipTLSVerifyBackend": ["true"]}
    assert options(asked, NOW) == (LogOptions(3, 9, NOW - 60 * 10**9, True, True), True)


@pytest.mark.parametrize(("value", "expected"), [("false", False), ("False", False), ("0", False), ("", True),
                                                 ("no", True)])
def test_flags_are_read_as_the_api_machinery_does(value: str, expected: bool) -> None:
    assert ask(follow=value).follow is expected


@pytest.mark.parametrize(
    "query",
    [
        {"tailLines": "-1"}, {"limitBytes": "0"}, {"sinceSeconds": "0"}, {"sinceSeconds": "-5"},
        {"sinceSeconds": "5", "sinceTime": "2024-01-02T03:04:05Z"},
    ],
)
def test_invalid_options_are_422(query: dict[str, str]) -> None:
    assert refused(**query) == 422


@pytest.mark.parametrize(
    "query",
    [{"tailLines": "x"}, {"tailLines": ""}, {"limitBytes": "1.5"}, {"sinceTime": "yesterday"}, {"stream": "Stdout"},
     {"sinceSeconds": str(2**63)}, {"tailLines": "1_0"}],
)
def test_what_cannot_be_decoded_is_400(query: dict[str, str]) -> None:
    assert refused(**query) == 400


def test_the_old_tail_parameter() -> None:
    assert ask(tail="5").tail_lines == 5
    assert ask(tail="all", tailLines="7").tail_lines is None


@given(st.dictionaries(st.sampled_from(["tailLines", "limitBytes", "sinceSeconds", "sinceTime", "tail", "follow"]),
                       st.text(max_size=12)))
def test_any_query_is_answered(query: dict[str, str]) -> None:
    try:
        found = ask(**query)
    except LogRequestError as error:
        assert error.status in (400, 422)
    else:
        assert (found.tail_lines or 0) >= 0 and found.since >= 0


def pod(state: dict[str, Any], last: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    status = {"name": "c", "state": state, "lastState": last or {}, **fields}
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]},
            "status": {"containerStatuses": [status]}}


def ended(container_id: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": 1, "containerID": container_id}}


RUNNING: dict[str, Any] = {"running": {}}


@pytest.mark.parametrize(
    ("found", "previous", "expected"),
    [
        (pod(RUNNING, ended("r://old"), containerID="r://new"), False, "new"),
        (pod(RUNNING, ended("r://old"), containerID="r://new"), True, "old"),
        (pod(ended("r://dead"), ended("r://old")), False, "dead"),
        (pod(ended(""), ended("r://old")), False, "old"),
        (pod({"waiting": {"reason": "CrashLoopBackOff"}}, ended("r://old")), False, "old"),
    ],
)
def test_the_container_that_is_meant(found: dict[str, Any], previous: bool, expected: str) -> None:
    assert choose(found, "c", previous) == expected


WHERE = 'container "c" in pod "p"'


@pytest.mark.parametrize(
    ("found", "previous", "text"),
    [
        (pod(RUNNING, containerID="r://new"), True, f"previous terminated {WHERE} not found"),
        (pod(RUNNING, ended("")), True, f"previous terminated {WHERE} not found"),
        (pod(ended("")), False, f"{WHERE} is terminated"),
        (pod({"waiting": {"reason": "X"}}, ended("")), False, f"{WHERE} is terminated"),
        (pod({"waiting": {"reason": "ErrImagePull"}}), False, f"{WHERE} is waiting to start: image can't be pulled"),
        (pod({"waiting": {"reason": "ImagePullBackOff"}}), False,
         f"{WHERE} is waiting to start: trying and failing to pull image"),
        (pod({"waiting": {"reason": "ContainerCreating"}}), False, f"{WHERE} is waiting to start: ContainerCreating"),
        (pod({}), False, f"{WHERE} is waiting to start - no logs yet"),
        ({"metadata": {"name": "p"}, "status": {}}, False, f"{WHERE} is not available"),
    ],
)
def test_why_there_is_no_log(found: dict[str, Any], previous: bool, text: str) -> None:
    with pytest.raises(LogRequestError) as caught:
        choose(found, "c", previous)
    assert (caught.value.status, str(caught.value)) == (400, text)


def test_containers_of_every_kind_are_known() -> None:
    assert has_container(pod(RUNNING), "i")
    assert not has_container(pod(RUNNING), "nope")


def test_running_is_about_one_very_container() -> None:
    found = pod(RUNNING, containerID="r://new")
    assert is_running(found, "new")
    assert not is_running(found, "old")
    assert not is_running(pod(ended("r://new"), containerID="r://new"), "new")
