"""The defaults that the API server fills into a pod.

Source: Kubernetes 1.37 pkg/apis/core/v1/defaults.go and zz_generated.defaults.go (SetObjectDefaults_Pod),
with the feature gates as they are by default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubelet_mp.model import quantity
from kubelet_mp.model.podschema import VOLUME_SOURCES

Json = dict[str, Any]

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS = ("postStart", "preStop")

_SPEC = {
    "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
}
_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_VOLUME: dict[str, Json] = {
    "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared"},
}
_DEFAULT_MODE = 0o644
_MODED = ("secret", "configMap", "downwardAPI", "projected")
_MILLI = 10**6  # nano-units in a thousandth

_MAX_IMAGE = 1024  # characters; the reference grammar stops well before
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:{_HOST}(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)


def set_pod_defaults(pod: Json) -> None:
    """Fill in the defaults, in place. `pod` has the right types (see `conform`)."""
    spec = pod.setdefault("spec", {})
    for container in _containers(spec):
        _container(container)
    for name in ("containers", "initContainers"):
        for container in spec.get(name, []):
            _requests_from_limits(container["resources"])
            if spec.get("hostNetwork"):
                _host_ports(container)
    for volume in spec.get("volumes", []):
        _volume(volume)
    _spec(spec)


def image_tag(image: str) -> str:
    """The tag of an image name; "latest" if it has neither tag nor digest, "" if it is no image name."""
    match = _REFERENCE.fullmatch(image) if len(image) <= _MAX_IMAGE else None
    if not match:
        return ""
    return match["tag"] or ("" if match["digest"] else "latest")


def _containers(spec: Json) -> Iterator[Json]:
    for name in CONTAINER_LISTS:
        yield from spec.get(name, [])


def _fill(target: Json, defaults: Json) -> None:
    """Set what is absent or zero."""
    for name, value in defaults.items():
        if not target.get(name):
            target[name] = value


def _spec(spec: Json) -> None:
    _fill(spec, _SPEC)
    spec.setdefault("securityContext", {})
    spec.setdefault("enableServiceLinks", True)
    if spec.setdefault("terminationGracePeriodSeconds", 30) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    if spec.get("serviceAccount") and not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    _round_up(spec.get("overhead"))
    _resources(spec.get("resources", {}))


def _container(container: Json) -> None:
    _fill(container, {**_CONTAINER, "imagePullPolicy": _pull_policy(container.get("image", ""))})
    _resources(container.setdefault("resources", {}))
    for port in container.get("ports", []):
        _fill(port, {"protocol": "TCP"})
    for env in container.get("env", []):
        source = env.get("valueFrom", {})
        _field_ref(source)
        if "fileKeyRef" in source:
            source["fileKeyRef"].setdefault("optional", False)
    for name in PROBES:
        if name in container:
            _fill(container[name], _PROBE)
            _handler(container[name])
    for name in HOOKS:
        _handler(container.get("lifecycle", {}).get(name, {}))


def _pull_policy(image: str) -> str:
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"


def _handler(handler: Json) -> None:
    if "httpGet" in handler:
        _fill(handler["httpGet"], {"path": "/", "scheme": "HTTP"})
    if "grpc" in handler:
        handler["grpc"].setdefault("service", "")


def _field_ref(source: Json) -> None:
    if "fieldRef" in source:
        _fill(source["fieldRef"], {"apiVersion": "v1"})


def _requests_from_limits(resources: Json) -> None:
    if "limits" in resources:
        resources["requests"] = {**resources["limits"], **resources.get("requests", {})}


def _resources(resources: Json) -> None:
    _round_up(resources.get("limits"))
    _round_up(resources.get("requests"))


def _round_up(amounts: dict[str, str] | None) -> None:
    """Quantities finer than a thousandth are rounded up to it."""
    for name, text in (amounts or {}).items():
        amount = quantity.parse(text)
        if amount.nano % _MILLI and amounts is not None:
            amounts[name] = str(quantity.Quantity(-(-amount.nano // _MILLI) * _MILLI, amount.form))


def _host_ports(container: Json) -> None:
    for port in container.get("ports", []):
        _fill(port, {"hostPort": port.get("containerPort", 0)})


def _volume(volume: Json) -> None:
    if not any(kind in volume for kind in VOLUME_SOURCES):
        volume["emptyDir"] = {}
    for kind, defaults in _VOLUME.items():
        if kind in volume:
            _fill(volume[kind], defaults)
    for kind in _MODED:
        if kind in volume:
            volume[kind].setdefault("defaultMode", _DEFAULT_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if "azureDisk" in volume:
        volume["azureDisk"].setdefault("readOnly", False)
    if "image" in volume:
        _fill(volume["image"], {"pullPolicy": _pull_policy(volume["image"].get("reference", ""))})
    _downward(volume.get("downwardAPI", {}))
    for source in volume.get("projected", {}).get("sources", []):
        _downward(source.get("downwardAPI", {}))
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
    claim = volume.get("ephemeral", {}).get("volumeClaimTemplate")
    if claim is not None:
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _downward(source: Json) -> None:
    for item in source.get("items", []):
        _field_ref(item)
