"""The validator, as a table: what is put into an otherwise good pod, and the problem that follows."""

import copy

import pytest

from kubelet_mp.model.defaults import set_pod_defaults
from kubelet_mp.model.validation import validate_pod

GOOD = {
    "metadata": {"name": "a.b-c", "namespace": "default", "labels": {"app": "x", "k8s.io/y": ""}},
    "spec": {
        "containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80, "name": "http"}],
                        "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        "initContainers": [{"name": "i", "image": "i:1"},
                           {"name": "s", "image": "i:1", "restartPolicy": "Always",
                            "startupProbe": {"tcpSocket": {"port": "http"}}}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}


def problems(**changes):
    """`changes`: a path with __ for dots → value; numbers index lists."""
    pod = copy.deepcopy(GOOD)
    for path, value in changes.items():
        *parents, last = path.split("__")
        at = pod
        for name in parents:
            at = at[int(name)] if name.isdigit() else at.setdefault(name, {})
        at[int(last) if last.isdigit() else last] = value
    set_pod_defaults(pod)
    return validate_pod(pod)


def test_a_good_pod_has_no_problem():
    assert problems() == []


C = "spec__containers__0__"
LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and " \
        "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is " \
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
CASES = [
    # metadata
    ("metadata__name", "", "metadata.name: Required value: name or generateName is required"),
    ("metadata__name", "A_b", 'metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must'),
    ("metadata__name", "a" * 254, "must be no more than 253 bytes"),
    ("metadata__namespace", "a.b", 'metadata.namespace: Invalid value: "a.b": must not contain dots'),
    ("metadata__labels", {"-a": "x"}, 'metadata.labels: Invalid value: "-a": name part must consist of'),
    ("metadata__labels", {"a/b/c": "x"}, "a valid label key must consist of"),
    ("metadata__labels", {"/b": "x"}, "prefix part must be non-empty"),
    ("metadata__labels", {"a": "x y"}, 'metadata.labels: Invalid value: "x y": a valid label must be an empty'),
    ("metadata__annotations", {"b d": ""}, "metadata.annotations: Invalid value: \"b d\""),
    ("metadata__annotations", {"a": "x" * 262144}, "metadata.annotations: Too long: may not be more than 262144"),
    # containers
    ("spec__containers", [], "spec.containers: Required value"),
    (C + "name", "", "spec.containers[0].name: Required value"),
    (C + "name", "A", f'spec.containers[0].name: Invalid value: "A": {LABEL}'),
    (C + "name", "i", 'spec.initContainers[0].name: Duplicate value: "i"'),
    (C + "image", "", "spec.containers[0].image: Required value"),
    (C + "image", " a", 'spec.containers[0].image: Invalid value: " a": must not have leading or trailing whitespace'),
    (C + "imagePullPolicy", "Soon", 'Unsupported value: "Soon": supported values: "Always", "IfNotPresent", "Never"'),
    (C + "terminationMessagePolicy", "x", "spec.containers[0].terminationMessagePolicy: Unsupported value"),
    ("spec__ephemeralContainers", [{"name": "e", "image": "x"}], "spec.ephemeralContainers: Forbidden: cannot be set"),
    ("spec__initContainers__0__livenessProbe", {"exec": {"command": ["x"]}},
     "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without"),
    ("spec__initContainers__0__restartPolicy", "Sometimes", "spec.initContainers[0].restartPolicy: Unsupported value"),
    (C + "restartPolicyRules", [{"action": "Restart"}],
     "spec.containers[0].restartPolicy: Required value: must specify"),
    (C + "restartPolicyRules", [{"action": "x"}], "spec.containers[0].restartPolicyRules[0].exitCodes: Required value"),
    (C + "resizePolicy", [{"resourceName": "disk", "restartPolicy": "NotRequired"}], 'Unsupported value: "disk"'),
    # ports
    (C + "ports", [{"containerPort": 0}], "spec.containers[0].ports[0].containerPort: Required value"),
    (C + "ports", [{"containerPort": 65536}], "Invalid value: 65536: must be between 1 and 65535, inclusive"),
    (C + "ports", [{"containerPort": 1, "protocol": "tcp"}],
     'protocol: Unsupported value: "tcp": supported values: "SCTP"'),
    (C + "ports", [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}],
     'ports[1].name: Duplicate value: "a"'),
    (C + "ports", [{"containerPort": 1, "name": "1234567890123456"}], "must be no more than 15 bytes"),
    (C + "ports", [{"containerPort": 1, "name": "1-"}], "must contain at least one letter"),
    (C + "ports", [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}],
     'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//5"'),
    # env
    (C + "env", [{"value": "x"}], "spec.containers[0].env[0].name: Required value"),
    (C + "env", [{"name": "a=b"}], "must consist only of printable ASCII characters other than '='"),
    (C + "env", [{"name": "a", "valueFrom": {}}], "must specify one of: `fieldRef`"),
    (C + "env", [{"name": "a", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
     'env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'),
    (C + "env", [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nam"}}}], "field label not supported"),
    (C + "env", [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}],
     'Unsupported value: "status.phase"'),
    (C + "env", [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.x['a']"}}}], "does not support subscript"),
    (C + "env", [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "cpu"}}}],
     'resource: Unsupported value: "cpu"'),
    (C + "env", [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}],
     "only divisor's values 1m and 1 are supported with the cpu resource"),
    (C + "env", [{"name": "a", "valueFrom": {"fileKeyRef": {"key": "k", "volumeName": "w", "path": "p"}}}],
     'Not found: "w"'),
    (C + "envFrom", [{}], "must specify one of: `configMapRef` or `secretRef`"),
    # mounts and volumes
    (C + "volumeMounts", [{"name": "w", "mountPath": "/w"}], 'spec.containers[0].volumeMounts[0].name: Not found: "w"'),
    (C + "volumeMounts", [{"name": "v"}], "volumeMounts[0].mountPath: Required value"),
    (C + "volumeMounts", [{"name": "v", "mountPath": "/v"}] * 2,
     'volumeMounts[1].mountPath: Invalid value: "/v": must be unique'),
    (C + "volumeMounts", [{"name": "v", "mountPath": "/v", "subPath": "/a"}], "must be a relative path"),
    (C + "volumeMounts", [{"name": "v", "mountPath": "/v", "subPath": "a/../b"}], "must not contain '..'"),
    (C + "volumeMounts", [{"name": "v", "mountPath": "/v", "mountPropagation": "Bidirectional"}],
     "available only to privileged containers"),
    (C + "volumeMounts", [{"name": "v", "mountPath": "/v", "recursiveReadOnly": "Enabled"}], "when readOnly is true"),
    (C + "volumeDevices", [{"name": "v", "devicePath": "/d"}], "can only use volume source type of Persistent"),
    ("spec__volumes", [{"emptyDir": {}}], "spec.volumes[0].name: Required value"),
    ("spec__volumes", [{"name": "v", "emptyDir": {}}] * 2, 'spec.volumes[1].name: Duplicate value: "v"'),
    ("spec__volumes", [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}],
     "may not specify more than 1 volume type"),
    ("spec__volumes", [{"name": "v", "hostPath": {}}], "spec.volumes[0].hostPath.path: Required value"),
    ("spec__volumes", [{"name": "v", "hostPath": {"path": "/a/../b"}}], "must not contain '..'"),
    ("spec__volumes", [{"name": "v", "hostPath": {"path": "/a", "type": "Dir"}}],
     'Unsupported value: "Dir": supported values: ""'),
    ("spec__volumes", [{"name": "v", "emptyDir": {"sizeLimit": "-1"}}],
     "SizeLimit field must be a valid resource quantity"),
    ("spec__volumes", [{"name": "v", "nfs": {"server": "s", "path": "p"}}], "must be an absolute path"),
    ("spec__volumes", [{"name": "v", "downwardAPI": {"items": [{"path": "../x"}]}}],
     "one of fieldRef and resourceFieldRef"),
    ("spec__volumes", [{"name": "v", "downwardAPI": {"defaultMode": 512}}], "must be a number between 0 and 0777"),
    ("spec__volumes", [{"name": "v", "projected": {"sources": [{}]}}], "must specify a volume projection type"),
    ("spec__volumes", [{"name": "v", "image": {"reference": ""}}], "spec.volumes[0].image.reference: Required value"),
    # resources
    (C + "resources", {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
     'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'),
    (C + "resources", {"requests": {"memory": "-1"}},
     "resources.requests[memory]: Invalid value: \"-1\": must be greater"),
    (C + "resources", {"limits": {"disk": "1"}}, "must be a standard resource type or fully qualified"),
    (C + "resources", {"limits": {"pods": "1"}}, "must be a standard resource for containers"),
    (C + "resources", {"limits": {"a.b/gpu": "1500m"}}, "must be an integer"),
    (C + "resources", {"requests": {"a.b/gpu": "1"}}, "Limit must be set for non overcommitable resources"),
    (C + "resources", {"limits": {"hugepages-2Mi": "4Mi"}}, "HugePages require cpu or memory"),
    (C + "resources", {"limits": {"cpu": "1", "hugepages-2Mi": "3Mi"}},
     "is not positive integer multiple of hugepages-2Mi"),
    (C + "resources", {"claims": [{"name": "x"}]}, 'spec.containers[0].resources.claims[0]: Not found: "x"'),
    ("spec__resources", {"limits": {"ephemeral-storage": "1"}},
     "spec.resources.limits[ephemeral-storage]: Unsupported"),
    # probes and hooks
    (C + "livenessProbe", {}, "spec.containers[0].livenessProbe: Required value: must specify a handler type"),
    (C + "livenessProbe", {"exec": {}}, "livenessProbe.exec.command: Required value"),
    (C + "livenessProbe", {"exec": {"command": ["x"]}, "successThreshold": 2},
     "successThreshold: Invalid value: 2: must be 1"),
    (C + "livenessProbe", {"tcpSocket": {"port": 0}}, "livenessProbe.tcpSocket.port: Invalid value: 0"),
    (C + "livenessProbe", {"tcpSocket": {"port": 1}, "exec": {"command": ["x"]}},
     "may not specify more than 1 handler"),
    (C + "readinessProbe", {"httpGet": {"port": "a_b"}}, "must contain only alpha-numeric characters"),
    (C + "readinessProbe", {"httpGet": {"port": 1, "scheme": "http"}},
     'Unsupported value: "http": supported values: "HTTP"'),
    (C + "readinessProbe", {"httpGet": {"port": 1, "httpHeaders": [{"name": "a b"}]}}, "a valid HTTP header must"),
    (C + "readinessProbe", {"grpc": {"port": 1}, "terminationGracePeriodSeconds": 3},
     "must not be set for readinessProbes"),
    (C + "startupProbe", {"grpc": {"port": 1}, "periodSeconds": -1}, "must be greater than or equal to 0"),
    (C + "startupProbe", {"grpc": {"port": 1}, "terminationGracePeriodSeconds": 0}, "must be greater than 0"),
    (C + "lifecycle", {"preStop": {}}, "lifecycle.preStop: Required value: must specify a handler type"),
    (C + "lifecycle", {"preStop": {"sleep": {"seconds": 31}}}, "less than terminationGracePeriodSeconds (30)"),
    (C + "lifecycle", {"stopSignal": "SIGTERM"}, "may not be set for containers with empty `spec.os.name`"),
    # security
    (C + "securityContext", {"runAsUser": -1}, "runAsUser: Invalid value: -1: must be between 0 and 2147483647"),
    (C + "securityContext", {"privileged": True, "allowPrivilegeEscalation": False},
     "cannot set `allowPrivilegeEscalation`"),
    (C + "securityContext", {"procMount": "Unmasked"}, "`hostUsers` must be false to use `Unmasked`"),
    (C + "securityContext", {"seccompProfile": {"type": "Localhost"}}, "must be set when seccomp type is Localhost"),
    (C + "securityContext", {"seccompProfile": {}}, "type is required when seccompProfile is set"),
    (C + "securityContext", {"appArmorProfile": {"type": "Localhost", "localhostProfile": " a"}},
     "padded with whitespace"),
    ("spec__securityContext", {"supplementalGroups": [1, 2**31]},
     "spec.securityContext.supplementalGroups[1]: Invalid"),
    ("spec__securityContext", {"sysctls": [{"name": "A"}]}, "must have at most 253 characters and match regex"),
    ("spec__securityContext", {"sysctls": [{"name": "a.b"}] * 2},
     'spec.securityContext.sysctls[1].name: Duplicate value'),
    ("spec__securityContext", {"fsGroupChangePolicy": "x"},
     "spec.securityContext.fsGroupChangePolicy: Unsupported value"),
    # the pod
    ("spec__restartPolicy", "Often", 'spec.restartPolicy: Unsupported value: "Often": supported values: "Always"'),
    ("spec__dnsPolicy", "Other", "spec.dnsPolicy: Unsupported value"),
    ("spec__dnsPolicy", "None", "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"),
    ("spec__dnsConfig", {"nameservers": ["1.1.1.1"] * 4}, "must not have more than 3 nameservers"),
    ("spec__dnsConfig", {"nameservers": ["x"]},
     "spec.dnsConfig.nameservers[0]: Invalid value: \"x\": must be a valid IP"),
    ("spec__dnsConfig", {"nameservers": ["010.1.1.1"]}, "must not have leading 0s"),
    ("spec__dnsConfig", {"nameservers": ["::ffff:1.2.3.4"]}, "must not be an IPv4-mapped IPv6 address"),
    ("spec__dnsConfig", {"searches": ["a"] * 33}, "must not have more than 32 search paths"),
    ("spec__dnsConfig", {"searches": ["a b"]}, "spec.dnsConfig.searches[0]: Invalid value"),
    ("spec__dnsConfig", {"options": [{}]}, "spec.dnsConfig.options[0]: Required value: must not be empty"),
    ("spec__hostAliases", [{"ip": "1.2.3"}], "spec.hostAliases[0].ip: Invalid value"),
    ("spec__hostAliases", [{"ip": "1.2.3.4", "hostnames": ["A"]}], "spec.hostAliases[0].hostnames[0]: Invalid value"),
    ("spec__hostname", "a.b", 'spec.hostname: Invalid value: "a.b": must not contain dots'),
    ("spec__nodeSelector", {"a b": ""}, "spec.nodeSelector: Invalid value"),
    ("spec__activeDeadlineSeconds", 0, "must be between 1 and 2147483647, inclusive"),
    ("spec__runtimeClassName", "A", "spec.runtimeClassName: Invalid value"),
    ("spec__tolerations", [{}], "operator must be Exists when `key` is empty"),
    ("spec__tolerations", [{"key": "a", "tolerationSeconds": 1}], "effect must be 'NoExecute' when"),
    ("spec__tolerations", [{"key": "a", "operator": "Exists", "value": "x"}], "value must be empty when"),
    ("spec__tolerations", [{"key": "a", "effect": "x"}], "spec.tolerations[0].effect: Unsupported value"),
    ("spec__schedulingGates", [{"name": "x"}], "cannot be set until all schedulingGates have been cleared"),
    ("spec__readinessGates", [{"conditionType": ""}], "spec.readinessGates[0].conditionType: Invalid value"),
    ("spec__os", {"name": "plan9"}, "spec.os.name: Unsupported value"),
    ("spec__hostnameOverride", "a" * 65, "spec.hostnameOverride: Too long: may not be more than 64 bytes"),
]


@pytest.mark.parametrize(("path", "value", "message"), CASES)
def test_one_fault_gives_its_message(path, value, message):
    found = problems(**{path: value})
    assert any(message in problem for problem in found), found


def test_all_faults_are_told_at_once():
    found = problems(metadata__name="A", spec__restartPolicy="x", spec__containers__0__image="")
    assert [problem.split(":")[0] for problem in found] == [
        "metadata.name", "spec.containers[0].image", "spec.restartPolicy"]


def test_host_network_rules():
    wrong = problems(spec__hostNetwork=True, spec__containers__0__ports=[{"containerPort": 80, "hostPort": 81}])
    assert wrong == ["spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when "
                     "`hostNetwork` is true"]
    sysctl = problems(spec__hostNetwork=True, spec__securityContext={"sysctls": [{"name": "net.ipv4.x"}]})
    assert "may not be specified when 'hostNetwork' is true" in sysctl[0]
    users = problems(spec__hostUsers=False, spec__hostPID=True)
    assert users == ["spec.hostPID: Forbidden: when `hostUsers` is false"]


def test_the_same_port_of_two_init_containers_is_no_conflict():
    ports = [{"containerPort": 1, "hostPort": 9}]
    assert problems(spec__initContainers__0__ports=ports, spec__initContainers__1__ports=ports) == []


@pytest.mark.parametrize(("path", "value"), [
    (C + "ports", [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5, "protocol": "UDP"}]),
    (C + "env", [{"name": "my.env-name 1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['A.b/C']"}}}]),
    (C + "env", [{"name": "a", "valueFrom": {"fileKeyRef": {"key": "k", "volumeName": "v", "path": "p"}}}]),
    (C + "resources", {"limits": {"cpu": "1", "a.b/gpu": "1", "hugepages-2Mi": "4Mi"}}),
    (C + "livenessProbe", {"httpGet": {"port": "http", "httpHeaders": [{"name": "Host", "value": "x"}]}}),
    (C + "lifecycle", {"preStop": {"sleep": {"seconds": 30}}, "postStart": {"tcpSocket": {"port": 1}}}),
    (C + "restartPolicyRules", []),
    ("spec__dnsConfig", {"nameservers": ["1.1.1.1", "fe80::1"], "searches": [".", "_a.b."],
                         "options": [{"name": "x"}]}),
    ("spec__securityContext", {"sysctls": [{"name": "net/ipv4/conf.x"}], "fsGroup": 5}),
    ("spec__volumes", [{"name": "v", "projected": {"sources": [{"downwardAPI": {"items": [
        {"path": "a/b", "fieldRef": {"fieldPath": "metadata.labels"}, "mode": 0o400}]}}]}}]),
    ("spec__tolerations", [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"}]),
])
def test_good_values_pass(path, value):
    assert problems(**{path: value}) == []
