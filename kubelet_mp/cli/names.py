"""Which pod a person means. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubelet_mp.errors import KubeletError

Row = Mapping[str, Any]
Name = tuple[str, str]  # namespace, name


class NoSuchPod(KubeletError):
    """No pod has that name, or several have."""


def pick(answer: Row, wanted: str) -> Name:
    """The (namespace, name) meant by POD or NAMESPACE/POD in an answer of /local/pods.

    A static pod may be named without the node's name at the end; a pod that is gone is taken only if none
    that is there fits, and so are manifests that cannot be used. Raises NoSuchPod with near names.
    """
    namespace, _, name = wanted.rpartition("/")
    here, rest = _names(answer["pods"]), _names([*answer["gone"], *_broken(answer)])
    for names in (here, rest):
        for exact in (name, f"{name}-{answer['node']}"):
            fitting = [n for n in names if n[1] == exact and namespace in ("", n[0])]
            if len(fitting) == 1:
                return fitting[0]
            if fitting:
                choices = ", ".join("/".join(n) for n in fitting)
                raise NoSuchPod(f'several pods are called "{name}": {choices}', "name it as NAMESPACE/POD")
    raise NoSuchPod(f'there is no pod "{wanted}" on this node', _near(name, [*here, *rest], answer["node"]))


def _names(rows: Iterable[Row]) -> list[Name]:
    return list(dict.fromkeys((row["namespace"], row["name"]) for row in rows))


def _broken(answer: Row) -> list[Row]:
    found: list[Row] = []
    for problem in answer["problems"]:
        namespace, slash, name = problem["pod"].partition("/")
        if slash:
            found.append({"namespace": namespace, "name": name})
    return found


def _near(name: str, names: Sequence[Name], node: str) -> str:
    by_name = {n[1].removesuffix(f"-{node}"): n for n in names} | {n[1]: n for n in names}
    near = difflib.get_close_matches(name, by_name, n=3, cutoff=0.5)
    near += [n for n in by_name if name and name in n]
    found = list(dict.fromkeys("/".join(by_name[n]) for n in near))[:3]
    if found:
        return "did you mean " + " or ".join(found) + "?"
    return "`kubelet-mp pods` lists what is there"
