"""Volumes on a real runtime: sub-paths that try to leave their volume."""

from __future__ import annotations

from pathlib import Path

from integration.rig.manifests import container, pod, shell

PLANT = ("mkdir /v/real && echo inside > /v/real/f && ln -s real /v/good && ln -s / /v/esc && "
         "ln -s ../../../../../../.. /v/up")


def test_a_sub_path_through_a_symlink_that_leaves_the_volume(agent):
    """kubernetes/kubernetes#61563 (CVE-2017-1002101), #104980 (CVE-2021-25741)."""

    def part(path: str) -> list[dict[str, str]]:
        return [{"name": "v", "mountPath": "/m", "subPath": path}]

    a = agent().start()
    plant = shell("plant", PLANT, volumeMounts=[{"name": "v", "mountPath": "/v"}])
    a.put("sub", pod("sub", shell("good", "cat /m/f; sleep 3600", volumeMounts=part("good")),
                     container("esc", volumeMounts=part("esc")), container("up", volumeMounts=part("up")),
                     shell("fresh", "stat -c %a /m; sleep 3600", volumeMounts=part("new/dir")),
                     initContainers=[plant], volumes=[{"name": "v", "emptyDir": {}}]))
    a.wait_running("sub", 2)
    waiting = a.wait(lambda: _waiting(a, "up") and _waiting(a, "esc") and {n: _waiting(a, n) for n in ("esc", "up")},
                     30, "two containers that cannot be made")
    for name, state in waiting.items():
        assert state == {"reason": "CreateContainerConfigError",
                         "message": f'failed to prepare subPath for volumeMount "v" of container "{name}"'}
        assert not a.cri.containers(pod=a.full_name("sub"), name=name)
    ids = {c.metadata.name: c.id for c in a.cri.containers(pod=a.full_name("sub"), running=True)}
    a.wait(lambda: a.output(ids["good"]) == "inside\n" and a.output(ids["fresh"]) == "777\n", 10, "their output")
    assert a.status("sub")["phase"] == "Pending"
    uid = (a.pod("sub") or {})["metadata"]["uid"]
    a.remove("sub")
    a.wait(lambda: not (a.root / "pods" / uid).exists(), 60, "the pod's directory is gone")
    assert uid not in Path("/proc/self/mounts").read_text()


def test_variables_that_one_container_leaves_for_another(agent):
    def variable(name: str, key: str, path: str = "config.env", **more: bool) -> dict[str, object]:
        return {"name": name, "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": path, "key": key, **more}}}

    a = agent().start()
    write = "printf \"# made here\\nONE='1 2'\\nTWO='a\\nb' # more\\n\" > /v/config.env; ln -s /etc/hostname /v/out"
    script = 'printf "%s|" "$A" "$B" "${C-unset}" "${D-unset}"; echo; sleep 3600'
    a.put("envfile", pod(
        "envfile", shell("c", script, env=[
            variable("A", "ONE"), variable("B", "TWO"), variable("C", "THREE", optional=True),
            variable("D", "ONE", "none.env", optional=True)]),
        shell("lacks", "true", env=[variable("A", "THREE")]),
        shell("leaves", "true", env=[variable("A", "ONE", "out")]),
        initContainers=[shell("w", write, volumeMounts=[{"name": "v", "mountPath": "/v"}])],
        volumes=[{"name": "v", "emptyDir": {}}]))
    a.wait_running("envfile", 1)
    [c] = a.wait(lambda: a.cri.containers(pod=a.full_name("envfile"), name="c", running=True), 10, "the container")
    a.wait(lambda: a.output(c.id) == "1 2|a\nb|unset|unset|\n", 10, "the variables")
    for name, text in (("lacks", 'environment variable key "THREE" not found in file "config.env"'),
                       ("leaves", 'couldn\'t read env file "out" of volume "v"')):
        a.wait(lambda n=name: (a.container_status("envfile", n).get("state") or {}).get("waiting"), 30, name)
        assert a.container_status("envfile", name)["state"]["waiting"] == {
            "reason": "CreateContainerConfigError", "message": text}


def _waiting(agent, name: str) -> dict[str, str]:
    state = agent.container_status("sub", name).get("state") or {}
    waiting: dict[str, str] = state.get("waiting") or {}
    return waiting if waiting.get("reason") not in (None, "PodInitializing") else {}
