"""What is known of the API server's pods: the newest, whichever way it came."""

from kubelet_mp.rooms.reporter.apiview import ApiView


def pod(version, phase, uid="u"):
    return {"metadata": {"uid": uid, "resourceVersion": version}, "status": {"phase": phase}}


def test_only_newer_versions_count():
    view = ApiView()
    assert view.status("u") is None
    assert view.take(pod("9", "Pending")) and view.take(pod("10", "Running"))
    assert not view.take(pod("10", "Running")) and not view.take(pod("9", "Pending"))
    assert view.status("u") == {"phase": "Running"}


def test_what_is_doubtful_or_gone_is_forgotten():
    view = ApiView()
    for uid in "abc":
        view.take(pod("5", "Running", uid))
    view.forget("a")
    view.keep({"a", "b"})
    assert [view.status(uid) for uid in "abc"] == [None, {"phase": "Running"}, None]
    assert view.take(pod("4", "Pending", "a"))


def test_a_version_that_is_no_number_is_looked_at_once():
    view = ApiView()
    assert view.take({"metadata": {"uid": "u"}}) and view.status("u") == {} and not view.take(pod("x", "Running"))
