"""Objects of controllers for tests, small and complete; pods in them end within a second."""

from __future__ import annotations

from typing import Any

from integration.rig.manifests import pod, says

Object = dict[str, Any]


def placed(manifest: Object, namespace: str, **labels: str) -> Object:
    """The same object in a namespace, with labels."""
    given = manifest["metadata"]
    metadata = given | {"namespace": namespace}
    if labels:
        metadata["labels"] = given.get("labels", {}) | labels
    return manifest | {"metadata": metadata}


def template(name: str, *containers: Object, **spec: Any) -> Object:
    """A pod template with the label `app`."""
    made = pod(name, *(containers or (says(name),)), **spec)
    return {"metadata": {"labels": {"app": name}}, "spec": made["spec"]}


def controlled(kind: str, name: str, namespace: str, body: Object, **spec: Any) -> Object:
    """A Deployment, DaemonSet or StatefulSet over the pods of a template."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": body, **spec},
    }


def deployment(name: str, namespace: str, replicas: int, *containers: Object, **spec: Any) -> Object:
    return controlled("Deployment", name, namespace, template(name, *containers, **spec), replicas=replicas)


def job(name: str, namespace: str, *containers: Object, **spec: Any) -> Object:
    body = template(name, *containers, restartPolicy="Never")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": body, **spec},
    }


def cron_job(name: str, namespace: str, schedule: str, *containers: Object) -> Object:
    once = job(name, namespace, *containers)
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": once["metadata"],
        "spec": {"schedule": schedule, "jobTemplate": {"spec": once["spec"]}},
    }
