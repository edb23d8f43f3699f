"""The environment of a container (Kubernetes 1.37 pkg/kubelet/kubelet_pods.go)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.model import podspec
from kubelet_mp.model.downward import field_value, resource_value
from kubelet_mp.model.envfile import value_in
from kubelet_mp.model.expansion import expand_from
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import ContainerSpec, Pod
from kubelet_mp.model.qos import is_static
from kubelet_mp.model.servicevars import Service, service_variables

_NEEDS_API = "write the value into the manifest, or run with --kubeconfig"


class Lookup(Protocol):
    """Where values outside of the pod come from; each answers None for what does not exist."""

    def config_map(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """`data` of a ConfigMap."""

    def secret(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """`data` of a Secret, decoded."""


EnvFiles = Callable[[str, str], str | None]
"""Volume, path in it → the text of an env file, None where there is none. Raises ContainerConfigError."""


def no_files(volume: str, path: str) -> str | None:
    """The volumes of a pod that has none."""
    raise ContainerConfigError(f'cannot find the volume "{volume}" referenced by FileKeyRef')


def environment(
    pod: Pod,
    container: ContainerSpec,
    node: NodeView,
    *,
    pod_ips: Sequence[str] = (),
    lookup: Lookup | None = None,
    services: Iterable[Service] | None = (),
    files: EnvFiles = no_files,
) -> dict[str, str]:
    """Name → value: env over envFrom over service variables, in that order of appearance.

    lookup: None when there is no API server. services: None while they have not been read once, an error
    for any pod but a static one. Raises ContainerConfigError.
    """
    if services is None and not is_static(pod):
        raise ContainerConfigError("services have not yet been read at least once, cannot construct envvars")
    linked = service_variables(pod, services or ())
    return _Builder(pod, container, node, pod_ips, lookup, linked, files).build()


class _Builder:
    """One container's environment in the making."""

    def __init__(
        self,
        pod: Pod,
        container: ContainerSpec,
        node: NodeView,
        pod_ips: Sequence[str],
        lookup: Lookup | None,
        linked: Mapping[str, str],
        files: EnvFiles,
    ) -> None:
        self.pod, self.container, self.node = pod, container, node
        self.pod_ips, self.lookup, self.linked, self.files = pod_ips, lookup, linked, files
        self.values: dict[str, str] = {}

    def build(self) -> dict[str, str]:
        for source in self.container.get("envFrom") or []:
            self._take_all(source)
        for variable in self.container.get("env") or []:
            value = self._value(variable)
            if value is not None:
                self.values[variable["name"]] = value
        return self.values | {k: v for k, v in self.linked.items() if k not in self.values}

    def _take_all(self, source: Mapping[str, Any]) -> None:
        prefix = source.get("prefix") or ""
        for field in ("configMapRef", "secretRef"):
            if field in source:
                entries = self._object(field, source[field])
                self.values |= {prefix + key: text for key, text in (entries or {}).items()}

    def _value(self, variable: Mapping[str, Any]) -> str | None:
        """The value of an entry of `env`; None when it is optional and not to be had."""
        literal, source = variable.get("value") or "", variable.get("valueFrom") or {}
        if literal or not source:
            return expand_from(literal, self.values, self.linked)
        if "fieldRef" in source:
            return field_value(source["fieldRef"].get("fieldPath") or "", self.pod, self.node, self.pod_ips)
        if "resourceFieldRef" in source:
            return resource_value(source["resourceFieldRef"], self.pod, self.container, self.node)
        if "fileKeyRef" in source:
            return self._from_file(source["fileKeyRef"])
        for field in ("configMapKeyRef", "secretKeyRef"):
            if field in source:
                return self._from_key(field, source[field])
        raise ContainerConfigError(
            f"env {variable.get('name')!r} of container {self.container.get('name')!r}: "
            f"unknown source {', '.join(source)}"
        )

    def _from_key(self, field: str, ref: Mapping[str, Any]) -> str | None:
        entries, key = self._object(field, ref), ref.get("key") or ""
        if entries is None or (key not in entries and ref.get("optional")):
            return None
        if key not in entries:
            kind = "ConfigMap" if field.startswith("configMap") else "Secret"
            where = f"{podspec.namespace(self.pod)}/{ref.get('name') or ''}"
            raise ContainerConfigError(f"couldn't find key {key} in {kind} {where}")
        return entries[key]

    def _object(self, field: str, ref: Mapping[str, Any]) -> Mapping[str, str] | None:
        """The entries of a ConfigMap or Secret; None when it is optional and does not exist."""
        kind = "configmap" if field.startswith("configMap") else "secret"
        lookup, name = self._lookup(f'{kind} "{ref.get("name") or ""}"'), ref.get("name") or ""
        ask = lookup.config_map if kind == "configmap" else lookup.secret
        entries = ask(podspec.namespace(self.pod), name)
        if entries is None and not ref.get("optional"):
            raise ContainerConfigError(f'{kind} "{name}" not found')
        return entries

    def _from_file(self, ref: Mapping[str, Any]) -> str | None:
        """An empty value is none, as upstream has it."""
        path, key = ref.get("path") or "", ref.get("key") or ""
        try:
            value = value_in(self.files(ref.get("volumeName") or "", path) or "", key)
        except ValueError as error:
            raise ContainerConfigError(f'couldn\'t parse env file "{path}": {error}') from error
        if value or ref.get("optional"):
            return value or None
        raise ContainerConfigError(f'environment variable key "{key}" not found in file "{path}"')

    def _lookup(self, wanted: str) -> Lookup:
        if self.lookup is None:
            raise ContainerConfigError(
                f'the environment of container "{self.container.get("name")}" refers to {wanted}, '
                "which needs the API server",
                _NEEDS_API,
            )
        return self.lookup
