"""Checks of metadata: name, namespace, labels, annotations, uid."""

from __future__ import annotations

from typing import Any

from kubelet_mp.model.validation import names
from kubelet_mp.model.validation.errors import Errors

MAX_ANNOTATIONS = 256 * 1024  # bytes of all keys and values together


def check_metadata(meta: dict[str, Any], errors: Errors) -> None:
    _name(meta, errors)
    namespace = meta.get("namespace", "")
    if not namespace:
        errors.required("metadata.namespace")
    else:
        errors.each_invalid("metadata.namespace", namespace, names.dns_label(namespace))
    if "uid" in meta:
        errors.each_invalid("metadata.uid", meta["uid"], names.uid(meta["uid"]))
    errors.not_negative("metadata.generation", meta.get("generation", 0))
    check_labels(meta.get("labels", {}), "metadata.labels", errors)
    _annotations(meta.get("annotations", {}), errors)


def _name(meta: dict[str, Any], errors: Errors) -> None:
    name = meta.get("name", "")
    if not name:
        errors.required("metadata.name", "name or generateName is required")
    else:
        errors.each_invalid("metadata.name", name, names.dns_subdomain(name))


def check_labels(labels: dict[str, str], path: str, errors: Errors) -> None:
    for key, value in labels.items():
        errors.each_invalid(path, key, names.qualified_name(key))
        errors.each_invalid(path, value, names.label_value(value))


def _annotations(annotations: dict[str, str], errors: Errors) -> None:
    size = 0
    for key, value in annotations.items():
        errors.each_invalid("metadata.annotations", key, names.qualified_name(key.lower()))
        size += len(key.encode()) + len(value.encode())
    if size > MAX_ANNOTATIONS:
        errors.too_long("metadata.annotations", MAX_ANNOTATIONS)
