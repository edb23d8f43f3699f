"""Feature gates known to this version, and whether each is on by default.

Source: Kubernetes 1.37 pkg/features/kube_features.go, the gates that concern a kubelet. AllAlpha and AllBeta
are not offered: naming each gate says what is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_ON = """
CPUManagerPolicyBetaOptions ClusterTrustBundleProjection ContainerCheckpoint ContainerRestartRules
DynamicResourceAllocation EnvFiles
ExtendWebSocketsToKubelet GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HugepageAwareEviction
ImageVolume InPlacePodVerticalScaling InPlacePodVerticalScalingInitContainers
InPlacePodLevelResourcesVerticalScaling KubeletEnsureSecretPulledImages KubeletFineGrainedAuthz KubeletPSI
KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders MemoryQoS NodeDeclaredFeatures
NodeLogQuery NodeSwap PLEGOnDemandRelist PodCertificateRequest PodLevelResources
PodObservedGenerationTracking PodReadyToStartContainersCondition PodsAPI ProcMountType
RecursiveReadOnlyMounts ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile ResourceHealthStatus
RestartAllContainersOnContainerExits RotateKubeletServerCertificate SELinuxMount SupplementalGroupsPolicy
SystemdWatchdog TopologyManagerPolicyBetaOptions UserNamespacesSupport
"""

_OFF = """
AllowDNSOnlyNodeCSR AtomicWriteVolumeUserFields CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth
ChangeContainerStatusOnKubeletRestart ContainerStopSignals
DefaultPodSysctls EmptyDirVolumeMode EventedPLEG ImageVolumeWithDigest
InPlacePodVerticalScalingMemoryBackedVolumes KubeletAllocatedPodsEndpoint
LocalStorageCapacityIsolationFSQuotaMonitoring PodAndContainerStatsFromCRI PodLevelResourceManagers
PodLogsQuerySplitStreams QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriAPI
TopologyManagerPolicyAlphaOptions
"""

KNOWN: Mapping[str, bool] = dict.fromkeys(_ON.split(), True) | dict.fromkeys(_OFF.split(), False)


def default_enabled(gate: str) -> bool:
    """The default of a gate. Raises KeyError when there is no such gate."""
    return KNOWN[gate]


def unknown(gates: Iterable[str]) -> list[str]:
    """Those of the names that are no gate of this version, sorted."""
    return sorted(set(gates) - KNOWN.keys())


def parse(text: str) -> dict[str, bool]:
    """The gates of a flag value "A=true,B=false". Raises ValueError that names the faulty part."""
    gates = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, sign, value = part.partition("=")
        if not sign:
            raise ValueError(f"missing bool value for {name}; write {name}=true or {name}=false")
        gates[name.strip()] = parse_bool(value.strip())
    return gates


def parse_bool(text: str) -> bool:
    """A Go boolean (strconv.ParseBool). Raises ValueError."""
    if text in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if text in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise ValueError(f"{text!r} is not true or false")
