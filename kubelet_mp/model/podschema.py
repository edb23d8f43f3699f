"""The fields of a core/v1 Pod and their types, as a table that `conform` reads.

Source: Kubernetes 1.37 k8s.io/api/core/v1 and k8s.io/apimachinery/pkg/apis/meta/v1. One type a paragraph:
`name:type`, `[t]` a list, `{t}` a map of text to t, a capitalised name another type of the table.
"""

from __future__ import annotations

from collections.abc import Mapping

_TABLE = """
Pod: apiVersion:str kind:str metadata:ObjectMeta spec:PodSpec status:any
PodSpec: volumes:[Volume] initContainers:[Container] containers:[Container]
    ephemeralContainers:[EphemeralContainer] restartPolicy:str terminationGracePeriodSeconds:int64
    activeDeadlineSeconds:int64 dnsPolicy:str nodeSelector:{str} serviceAccountName:str serviceAccount:str
    automountServiceAccountToken:bool nodeName:str hostNetwork:bool hostPID:bool hostIPC:bool
    shareProcessNamespace:bool securityContext:PodSecurityContext imagePullSecrets:[LocalObjectReference]
    hostname:str subdomain:str affinity:Affinity schedulerName:str tolerations:[Toleration]
    hostAliases:[HostAlias] priorityClassName:str priority:int32 dnsConfig:PodDNSConfig
    readinessGates:[PodReadinessGate] runtimeClassName:str enableServiceLinks:bool preemptionPolicy:str
    overhead:{quantity} topologySpreadConstraints:[TopologySpreadConstraint] setHostnameAsFQDN:bool os:PodOS
    hostUsers:bool schedulingGates:[PodSchedulingGate] resourceClaims:[PodResourceClaim]
    resources:ResourceRequirements hostnameOverride:str schedulingGroup:PodSchedulingGroup
    evictionResponders:[EvictionResponder]
ObjectMeta: name:str generateName:str namespace:str selfLink:str uid:str resourceVersion:str
    generation:int64 creationTimestamp:time deletionTimestamp:time deletionGracePeriodSeconds:int64
    labels:{str} annotations:{str} ownerReferences:[OwnerReference] finalizers:[str]
    managedFields:[ManagedFieldsEntry]
LabelSelector: matchLabels:{str} matchExpressions:[LabelSelectorRequirement]
Volume: name:str hostPath:HostPathVolumeSource emptyDir:EmptyDirVolumeSource
    gcePersistentDisk:GCEPersistentDiskVolumeSource awsElasticBlockStore:AWSElasticBlockStoreVolumeSource
    gitRepo:GitRepoVolumeSource secret:SecretVolumeSource nfs:NFSVolumeSource iscsi:ISCSIVolumeSource
    glusterfs:GlusterfsVolumeSource persistentVolumeClaim:PersistentVolumeClaimVolumeSource
    rbd:RBDVolumeSource flexVolume:FlexVolumeSource cinder:CinderVolumeSource cephfs:CephFSVolumeSource
    flocker:FlockerVolumeSource downwardAPI:DownwardAPIVolumeSource fc:FCVolumeSource
    azureFile:AzureFileVolumeSource configMap:ConfigMapVolumeSource
    vsphereVolume:VsphereVirtualDiskVolumeSource quobyte:QuobyteVolumeSource azureDisk:AzureDiskVolumeSource
    photonPersistentDisk:PhotonPersistentDiskVolumeSource projected:ProjectedVolumeSource
    portworxVolume:PortworxVolumeSource scaleIO:ScaleIOVolumeSource storageos:StorageOSVolumeSource
    csi:CSIVolumeSource ephemeral:EphemeralVolumeSource image:ImageVolumeSource
Container: name:str image:str command:[str] args:[str] workingDir:str ports:[ContainerPort]
    envFrom:[EnvFromSource] env:[EnvVar] resources:ResourceRequirements resizePolicy:[ContainerResizePolicy]
    restartPolicy:str restartPolicyRules:[ContainerRestartRule] volumeMounts:[VolumeMount]
    volumeDevices:[VolumeDevice] livenessProbe:Probe readinessProbe:Probe startupProbe:Probe
    lifecycle:Lifecycle terminationMessagePath:str terminationMessagePolicy:str imagePullPolicy:str
    securityContext:SecurityContext stdin:bool stdinOnce:bool tty:bool
EphemeralContainer: name:str image:str command:[str] args:[str] workingDir:str ports:[ContainerPort]
    envFrom:[EnvFromSource] env:[EnvVar] resources:ResourceRequirements resizePolicy:[ContainerResizePolicy]
    restartPolicy:str restartPolicyRules:[ContainerRestartRule] volumeMounts:[VolumeMount]
    volumeDevices:[VolumeDevice] livenessProbe:Probe readinessProbe:Probe startupProbe:Probe
    lifecycle:Lifecycle terminationMessagePath:str terminationMessagePolicy:str imagePullPolicy:str
    securityContext:SecurityContext stdin:bool stdinOnce:bool tty:bool targetContainerName:str
PodSecurityContext: seLinuxOptions:SELinuxOptions windowsOptions:WindowsSecurityContextOptions
    runAsUser:int64 runAsGroup:int64 runAsNonRoot:bool supplementalGroups:[int64]
    supplementalGroupsPolicy:str fsGroup:int64 sysctls:[Sysctl] fsGroupChangePolicy:str
    seccompProfile:SeccompProfile appArmorProfile:AppArmorProfile seLinuxChangePolicy:str
LocalObjectReference: name:str
Affinity: nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAntiAffinity
Toleration: key:str operator:str value:str effect:str tolerationSeconds:int64
HostAlias: ip:str hostnames:[str]
PodDNSConfig: nameservers:[str] searches:[str] options:[PodDNSConfigOption]
PodReadinessGate: conditionType:str
TopologySpreadConstraint: maxSkew:int32 topologyKey:str whenUnsatisfiable:str labelSelector:LabelSelector
    minDomains:int32 nodeAffinityPolicy:str nodeTaintsPolicy:str matchLabelKeys:[str]
PodOS: name:str
PodSchedulingGate: name:str
PodResourceClaim: name:str resourceClaimName:str resourceClaimTemplateName:str
ResourceRequirements: limits:{quantity} requests:{quantity} claims:[ResourceClaim]
PodSchedulingGroup: podGroupName:str
EvictionResponder: name:str priority:int32
OwnerReference: apiVersion:str kind:str name:str uid:str controller:bool blockOwnerDeletion:bool
ManagedFieldsEntry: manager:str operation:str apiVersion:str time:time fieldsType:str fieldsV1:any
    subresource:str
LabelSelectorRequirement: key:str operator:str values:[str]
HostPathVolumeSource: path:str type:str
EmptyDirVolumeSource: medium:str sizeLimit:quantity mode:int32
GCEPersistentDiskVolumeSource: pdName:str fsType:str partition:int32 readOnly:bool
AWSElasticBlockStoreVolumeSource: volumeID:str fsType:str partition:int32 readOnly:bool
GitRepoVolumeSource: repository:str revision:str directory:str
SecretVolumeSource: secretName:str items:[KeyToPath] defaultMode:int32 optional:bool defaultUser:int64
NFSVolumeSource: server:str path:str readOnly:bool
ISCSIVolumeSource: targetPortal:str iqn:str lun:int32 iscsiInterface:str fsType:str readOnly:bool
    portals:[str] chapAuthDiscovery:bool chapAuthSession:bool secretRef:LocalObjectReference
    initiatorName:str
GlusterfsVolumeSource: endpoints:str path:str readOnly:bool
PersistentVolumeClaimVolumeSource: claimName:str readOnly:bool
RBDVolumeSource: monitors:[str] image:str fsType:str pool:str user:str keyring:str
    secretRef:LocalObjectReference readOnly:bool
FlexVolumeSource: driver:str fsType:str secretRef:LocalObjectReference readOnly:bool options:{str}
CinderVolumeSource: volumeID:str fsType:str readOnly:bool secretRef:LocalObjectReference
CephFSVolumeSource: monitors:[str] path:str user:str secretFile:str secretRef:LocalObjectReference
    readOnly:bool
FlockerVolumeSource: datasetName:str datasetUUID:str
DownwardAPIVolumeSource: items:[DownwardAPIVolumeFile] defaultMode:int32 defaultUser:int64
FCVolumeSource: targetWWNs:[str] lun:int32 fsType:str readOnly:bool wwids:[str]
AzureFileVolumeSource: secretName:str shareName:str readOnly:bool
ConfigMapVolumeSource: name:str items:[KeyToPath] defaultMode:int32 optional:bool defaultUser:int64
VsphereVirtualDiskVolumeSource: volumePath:str fsType:str storagePolicyName:str storagePolicyID:str
QuobyteVolumeSource: registry:str volume:str readOnly:bool user:str group:str tenant:str
AzureDiskVolumeSource: diskName:str diskURI:str cachingMode:str fsType:str readOnly:bool kind:str
PhotonPersistentDiskVolumeSource: pdID:str fsType:str
ProjectedVolumeSource: sources:[VolumeProjection] defaultMode:int32 defaultUser:int64
PortworxVolumeSource: volumeID:str fsType:str readOnly:bool
ScaleIOVolumeSource: gateway:str system:str secretRef:LocalObjectReference sslEnabled:bool
    protectionDomain:str storagePool:str storageMode:str volumeName:str fsType:str readOnly:bool
StorageOSVolumeSource: volumeName:str volumeNamespace:str fsType:str readOnly:bool
    secretRef:LocalObjectReference
CSIVolumeSource: driver:str readOnly:bool fsType:str volumeAttributes:{str}
    nodePublishSecretRef:LocalObjectReference
EphemeralVolumeSource: volumeClaimTemplate:PersistentVolumeClaimTemplate
ImageVolumeSource: reference:str pullPolicy:str
ContainerPort: name:str hostPort:int32 containerPort:int32 protocol:str hostIP:str
EnvFromSource: prefix:str configMapRef:ConfigMapEnvSource secretRef:SecretEnvSource
EnvVar: name:str value:str valueFrom:EnvVarSource
ContainerResizePolicy: resourceName:str restartPolicy:str
ContainerRestartRule: action:str exitCodes:ContainerRestartRuleOnExitCodes
VolumeMount: name:str readOnly:bool recursiveReadOnly:str mountPath:str subPath:str mountPropagation:str
    subPathExpr:str bindMountOptions:[str]
VolumeDevice: name:str devicePath:str
Probe: exec:ExecAction httpGet:HTTPGetAction tcpSocket:TCPSocketAction grpc:GRPCAction
    initialDelaySeconds:int32 timeoutSeconds:int32 periodSeconds:int32 successThreshold:int32
    failureThreshold:int32 terminationGracePeriodSeconds:int64
Lifecycle: postStart:LifecycleHandler preStop:LifecycleHandler stopSignal:str
SecurityContext: capabilities:Capabilities privileged:bool seLinuxOptions:SELinuxOptions
    windowsOptions:WindowsSecurityContextOptions runAsUser:int64 runAsGroup:int64 runAsNonRoot:bool
    readOnlyRootFilesystem:bool allowPrivilegeEscalation:bool procMount:str seccompProfile:SeccompProfile
    appArmorProfile:AppArmorProfile
SELinuxOptions: user:str role:str type:str level:str
WindowsSecurityContextOptions: gmsaCredentialSpecName:str gmsaCredentialSpec:str runAsUserName:str
    hostProcess:bool
Sysctl: name:str value:str
SeccompProfile: type:str localhostProfile:str
AppArmorProfile: type:str localhostProfile:str
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
    preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm]
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
    preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
    preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
PodDNSConfigOption: name:str value:str
ResourceClaim: name:str request:str
KeyToPath: key:str path:str mode:int32 user:int64
DownwardAPIVolumeFile: path:str fieldRef:ObjectFieldSelector resourceFieldRef:ResourceFieldSelector
    mode:int32 user:int64
VolumeProjection: secret:SecretProjection downwardAPI:DownwardAPIProjection configMap:ConfigMapProjection
    serviceAccountToken:ServiceAccountTokenProjection clusterTrustBundle:ClusterTrustBundleProjection
    podCertificate:PodCertificateProjection
PersistentVolumeClaimTemplate: metadata:ObjectMeta spec:PersistentVolumeClaimSpec
ConfigMapEnvSource: name:str optional:bool
SecretEnvSource: name:str optional:bool
EnvVarSource: fieldRef:ObjectFieldSelector resourceFieldRef:ResourceFieldSelector
    configMapKeyRef:ConfigMapKeySelector secretKeyRef:SecretKeySelector fileKeyRef:FileKeySelector
ContainerRestartRuleOnExitCodes: operator:str values:[int32]
ExecAction: command:[str]
HTTPGetAction: path:str port:intstr host:str scheme:str httpHeaders:[HTTPHeader] protocol:str
TCPSocketAction: port:intstr host:str
GRPCAction: port:int32 service:str mode:str
LifecycleHandler: exec:ExecAction httpGet:HTTPGetAction tcpSocket:TCPSocketAction sleep:SleepAction
Capabilities: add:[str] drop:[str]
NodeSelector: nodeSelectorTerms:[NodeSelectorTerm]
PreferredSchedulingTerm: weight:int32 preference:NodeSelectorTerm
PodAffinityTerm: labelSelector:LabelSelector namespaces:[str] topologyKey:str
    namespaceSelector:LabelSelector matchLabelKeys:[str] mismatchLabelKeys:[str]
WeightedPodAffinityTerm: weight:int32 podAffinityTerm:PodAffinityTerm
ObjectFieldSelector: apiVersion:str fieldPath:str
ResourceFieldSelector: containerName:str resource:str divisor:quantity
SecretProjection: name:str items:[KeyToPath] optional:bool
DownwardAPIProjection: items:[DownwardAPIVolumeFile]
ConfigMapProjection: name:str items:[KeyToPath] optional:bool
ServiceAccountTokenProjection: audience:str expirationSeconds:int64 path:str user:int64
ClusterTrustBundleProjection: name:str signerName:str labelSelector:LabelSelector optional:bool path:str
    user:int64
PodCertificateProjection: signerName:str keyType:str maxExpirationSeconds:int32 credentialBundlePath:str
    keyPath:str certificateChainPath:str userAnnotations:{str} user:int64
PersistentVolumeClaimSpec: accessModes:[str] selector:LabelSelector resources:VolumeResourceRequirements
    volumeName:str storageClassName:str volumeMode:str dataSource:TypedLocalObjectReference
    dataSourceRef:TypedObjectReference volumeAttributesClassName:str
ConfigMapKeySelector: name:str key:str optional:bool
SecretKeySelector: name:str key:str optional:bool
FileKeySelector: volumeName:str path:str key:str optional:bool
HTTPHeader: name:str value:str
SleepAction: seconds:int64
NodeSelectorTerm: matchExpressions:[NodeSelectorRequirement] matchFields:[NodeSelectorRequirement]
VolumeResourceRequirements: limits:{quantity} requests:{quantity}
TypedLocalObjectReference: apiGroup:str kind:str name:str
TypedObjectReference: apiGroup:str kind:str name:str namespace:str
NodeSelectorRequirement: key:str operator:str values:[str]
"""


def _parse(table: str) -> dict[str, dict[str, str]]:
    types: dict[str, dict[str, str]] = {}
    for line in table.strip().replace("\n    ", " ").splitlines():
        name, _, fields = line.partition(": ")
        types[name] = dict(pair.split(":", 1) for pair in fields.split())
    return types


TYPES: Mapping[str, Mapping[str, str]] = _parse(_TABLE)
"""Type → field → type of the field."""

VOLUME_SOURCES = tuple(name for name in TYPES["Volume"] if name != "name")
"""The fields of a volume of which exactly one is set."""
