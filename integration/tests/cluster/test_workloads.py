"""What controllers and kubectl make a node do, from the first pod to a drained node."""

from __future__ import annotations

from integration.rig import agreement, workloads
from integration.rig.cluster import Cluster, condition
from integration.rig.manifests import host_folder, mounted, pod, shell


def test_a_deployment_scales_and_rolls_out(cluster: Cluster, node, namespace):
    made = node()
    cluster.apply(workloads.deployment("web", namespace, 3))
    first = {one["metadata"]["uid"] for one in cluster.wait_pods(namespace, 3)}
    cluster.kubectl("scale", "deployment/web", "--replicas=10", "-n", namespace)
    assert first <= {one["metadata"]["uid"] for one in cluster.wait_pods(namespace, 10)}
    agreement.wait(cluster, made)
    cluster.kubectl("scale", "deployment/web", "--replicas=3", "-n", namespace)
    before = {one["metadata"]["uid"] for one in cluster.wait_pods(namespace, 3)}
    cluster.apply(workloads.deployment("web", namespace, 3, shell("c", "echo NEW; sleep 3600")))
    cluster.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=60s")
    after = cluster.wait_pods(namespace, 3)
    assert not before & {one["metadata"]["uid"] for one in after}
    assert {cluster.kubectl("logs", "-n", namespace, one["metadata"]["name"]) for one in after} == {"NEW\n"}
    agreement.wait(cluster, made)


def test_a_node_is_drained_and_comes_back(cluster: Cluster, node, namespace):
    made = node()
    scratch = {"name": "scratch", "emptyDir": {}}
    body = workloads.template("kept", volumes=[scratch])
    cluster.apply(
        workloads.controlled("DaemonSet", "daemon", namespace, workloads.template("daemon")),
        workloads.controlled("Deployment", "kept", namespace, body, replicas=3),
    )
    cluster.wait_pods(namespace, 4)
    cluster.kubectl("drain", made.node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
    cluster.wait_pods(namespace, 1, "app=daemon")
    waiting = cluster.pods(namespace, "app=kept")
    assert [one["status"]["phase"] for one in waiting] == ["Pending"] * 3
    assert not any(one["spec"].get("nodeName") for one in waiting)
    cluster.kubectl("uncordon", made.node)
    cluster.wait_pods(namespace, 4)
    agreement.wait(cluster, made)


def test_a_job_finishes_and_fails(cluster: Cluster, node, namespace):
    made = node()
    cluster.apply(
        workloads.job("good", namespace, shell("c", "echo DONE"), completions=3, parallelism=2),
        workloads.job("bad", namespace, shell("c", "exit 3"), backoffLimit=0),
    )
    cluster.kubectl("wait", "job/good", "-n", namespace, "--for=condition=complete", "--timeout=60s")
    cluster.kubectl("wait", "job/bad", "-n", namespace, "--for=condition=failed", "--timeout=60s")
    good, [bad] = cluster.pods(namespace, "app=good"), cluster.pods(namespace, "app=bad")
    assert [one["status"]["phase"] for one in good] == ["Succeeded"] * 3
    assert bad["status"]["phase"] == "Failed"
    assert bad["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert cluster.kubectl("logs", "-n", namespace, good[0]["metadata"]["name"]) == "DONE\n"
    agreement.wait(cluster, made)


def test_a_cron_job_runs(cluster: Cluster, node, namespace):
    node()
    cluster.apply(workloads.cron_job("tick", namespace, "* * * * *", shell("c", "echo TICK")))
    path = f"/apis/batch/v1/namespaces/{namespace}/cronjobs/tick"
    cluster.wait(lambda: cluster.get(path)["status"].get("lastSuccessfulTime"), 90, "a run of the cron job is over")


def test_a_stateful_set_keeps_its_names(cluster: Cluster, node, namespace):
    made = node()
    cluster.apply(workloads.controlled(
        "StatefulSet", "db", namespace, workloads.template("db"), replicas=3, serviceName="db"
    ))
    before = {one["metadata"]["name"]: one for one in cluster.wait_pods(namespace, 3)}
    assert list(before) == ["db-0", "db-1", "db-2"]
    cluster.kubectl("delete", "pod", "db-1", "-n", namespace)
    after = {one["metadata"]["name"]: one for one in cluster.wait_pods(namespace, 3)}
    changed = [name for name in before if before[name]["metadata"]["uid"] != after[name]["metadata"]["uid"]]
    assert list(after) == list(before) and changed == ["db-1"]
    cluster.kubectl("scale", "statefulset/db", "--replicas=0", "-n", namespace)
    cluster.wait_pods(namespace, 0)
    agreement.wait(cluster, made)


def test_a_pod_moves_when_its_node_is_killed(cluster: Cluster, node, second_runtime, namespace):
    dead = node("node-1")
    node("node-2", runtime=second_runtime)
    cluster.kubectl("cordon", "node-2")
    unreachable = [
        {"key": f"node.kubernetes.io/{word}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        for word in ("unreachable", "not-ready")
    ]
    cluster.apply(workloads.deployment("mover", namespace, 1, tolerations=unreachable))
    [first] = cluster.wait_pods(namespace, 1)
    assert first["spec"]["nodeName"] == "node-1"
    cluster.kubectl("uncordon", "node-2")
    dead.kill()
    cluster.wait_node("node-1", ready=False, seconds=90)

    def moved() -> bool:
        ready = [one for one in cluster.pods(namespace) if condition(one, "Ready") == "True"]
        return [one["spec"]["nodeName"] for one in ready] == ["node-2"]

    cluster.wait(moved, 60, "the pod runs on the other node")
    dead.start()
    cluster.wait_node("node-1")
    dead.wait(lambda: not dead.cri.containers(pod=first["metadata"]["name"], running=True), 30, "the old pod ended")
    cluster.wait_pods(namespace, 1)


def test_a_pod_moves_when_its_node_is_drained(cluster: Cluster, node, second_runtime, namespace):
    first, second = node("node-1"), node("node-2", runtime=second_runtime)
    cluster.kubectl("cordon", "node-2")
    cluster.apply(workloads.deployment("mover", namespace, 3))
    cluster.wait_pods(namespace, 3)
    cluster.kubectl("uncordon", "node-2")
    cluster.kubectl("drain", "node-1", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
    assert {one["spec"]["nodeName"] for one in cluster.wait_pods(namespace, 3)} == {"node-2"}
    agreement.wait(cluster, first)
    agreement.wait(cluster, second)


def test_a_pod_survives_what_its_container_does_not(cluster: Cluster, node, namespace, tmp_path):
    """A crash is counted and restarted, and told to the API."""
    made = node()
    script = "n=$(cat /out/n 2>/dev/null || echo 0); echo $((n+1)) > /out/n; [ $n -ge 1 ] && sleep 3600; exit 7"
    crashing = pod("crash", {**shell("c", script), "volumeMounts": [mounted()]}, volumes=[host_folder(tmp_path)])
    cluster.apply(workloads.placed(crashing, namespace))

    def restarted() -> bool:
        [status] = cluster.pods(namespace)[0]["status"].get("containerStatuses") or [{}]
        return status.get("restartCount") == 1 and "running" in status["state"]

    cluster.wait(restarted, 60, "the container runs again")
    [status] = cluster.pods(namespace)[0]["status"]["containerStatuses"]
    assert status["lastState"]["terminated"]["exitCode"] == 7
    agreement.wait(cluster, made)
