"""Settings: the one frozen object that everything reads its configuration from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubelet_mp import __version__
from kubelet_mp.config.features import default_enabled
from kubelet_mp.config.model import KubeletConfiguration

KUBERNETES_VERSION = "v1.37.2"
"""The release whose behaviour this agent keeps."""
REPORTED_VERSION = f"{KUBERNETES_VERSION}+kubelet-mp.{__version__}"
"""What --version and the node object say: the same release for comparisons, our own as build metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Flags that have no field in the file, and the KubeletConfiguration. Picklable; times in seconds.

    node_name: the override or the host's name, trimmed and lower-cased; never empty.
    hostname: the host's name as the label kubernetes.io/hostname takes it (the override, if given).
    node_ips: as given; an unspecified address (:: or 0.0.0.0) only prefers a family.
    warnings: what load() noticed before logging was up; the supervisor logs them.
    """

    node_name: str
    hostname: str = ""
    kubelet: KubeletConfiguration = field(default_factory=KubeletConfiguration)
    config: str = ""
    config_dir: str = ""
    kubeconfig: str = ""
    bootstrap_kubeconfig: str = ""
    node_ips: tuple[str, ...] = ()
    root_dir: str = "/var/lib/kubelet"
    cert_dir: str = "/var/lib/kubelet/pki"
    cloud_provider: str = ""
    node_labels: dict[str, str] = field(default_factory=dict)
    lock_file: str = ""
    exit_on_lock_contention: bool = False
    runtime_cgroups: str = ""
    image_credential_provider_config: str = ""
    image_credential_provider_bin_dir: str = ""
    housekeeping_interval: float = 10.0
    minimum_container_ttl_duration: float = 0.0
    maximum_dead_containers_per_container: int = 1
    maximum_dead_containers: int = -1
    cadvisor_port: int = 4194
    experimental_allocatable_ignore_eviction: bool = False
    kubernetes_version: str = REPORTED_VERSION
    warnings: tuple[str, ...] = ()

    @property
    def standalone(self) -> bool:
        """Whether there is no API server: neither kubeconfig nor bootstrap kubeconfig given."""
        return not (self.kubeconfig or self.bootstrap_kubeconfig)

    @property
    def instance_lock(self) -> str:
        """The file whose flock keeps a second instance off this root directory."""
        return f"{self.root_dir}/kubelet-mp.lock"

    def feature(self, gate: str) -> bool:
        """Whether a feature gate is on. Raises KeyError for a gate that does not exist."""
        default = default_enabled(gate)
        return self.kubelet.feature_gates.get(gate, default)

    def as_v1beta1(self) -> dict[str, Any]:
        """The effective KubeletConfiguration as a plain v1beta1 document, for /configz."""
        return self.kubelet.as_v1beta1()

    def loggable(self) -> dict[str, Any]:
        """The effective configuration with the headers of the manifest URL masked."""
        document = self.as_v1beta1()
        document["staticPodURLHeader"] = {name: ["<masked>"] for name in document["staticPodURLHeader"]}
        return document
