"""Whether a defaulted pod is valid: every problem with its field path, in the API server's terms.

What belongs here: pure checks, one module a part of the pod, that add to an `Errors` list.
What may not live here: defaults, types (see `conform`), what only a running kubelet can judge (admission).
Not checked, because only a scheduler acts on it: pod affinity, topology spread, scheduling groups, and
anything for Windows.

Source: Kubernetes 1.37 pkg/apis/core/validation/validation.go (ValidatePodCreate).
"""

from kubelet_mp.model.validation.errors import Errors
from kubelet_mp.model.validation.metadata import check_metadata
from kubelet_mp.model.validation.spec import check_spec

__all__ = ["validate_pod"]


def validate_pod(pod: dict) -> list[str]:  # type: ignore[type-arg]
    """All problems of a pod with right types and defaults: `field path: kind of problem: …` each."""
    errors = Errors()
    check_metadata(pod.get("metadata", {}), errors)
    check_spec(pod["spec"], errors)
    return list(errors)
