"""A real control plane on this machine: etcd, API server, controllers, scheduler; started and removed."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from integration.rig import bootstrap, certs, controlplane, loopback, sweep
from integration.rig.console import RigError, poll, run, say
from integration.rig.controlplane import API, CONTROLLERS, ETCD, SCHEDULER, Plan
from integration.rig.layout import Layout
from integration.rig.ports import free_port, may_listen
from integration.rig.service import Service

_HTTPS = 443
_NOT_FOUND = 404
_DEFAULT = "default"
# it would wait a minute for its watches to end; etcd has everything that it has answered for
_STOP = {API: signal.SIGKILL}


class Cluster:
    """One control plane. Its folders and addresses follow from the layout of the runtime that goes with it."""

    def __init__(self, layout: Layout, programs: Path) -> None:
        self.programs, self.network = programs, loopback.Network(layout.cluster_network)
        name = f"kubelet-mp-{layout.name}-cluster"
        self.run, self.data, self.log = Path("/run", name), Path("/var/lib", name), Path("/var/log", name)
        self.plan = Plan(
            data=self.data,
            pki=self.data / "pki",
            address=self.network.address(0, 1),
            port=_HTTPS if may_listen(_HTTPS) else free_port(),
            services=self.network.part(0),
            etcd_port=free_port(),
            etcd_peer_port=free_port(),
        )
        self._nodes: list[str] = []
        self._changed: dict[str, dict[str, str]] = {}

    # -- life

    def start(self) -> Cluster:
        """Bring everything up, with credentials, until pods can be created (about 10 s)."""
        self.stop()  # what an earlier run may have left when it was killed
        for folder in (self.run, self.data, self.log):
            folder.mkdir(parents=True, exist_ok=True)
        self.network.add(self.plan.address)
        self._credentials()
        self._service(ETCD).start()
        self._start_api()
        self.kubectl("apply", "-f", "-", text=bootstrap.roles())
        self._start_clients()
        self.wait(self._can_create_pods, 60, "the controllers made the default service account", CONTROLLERS)
        say(f"Kubernetes {self.get('/version')['gitVersion']} is up at {self.plan.server}")
        return self

    def stop(self) -> list[str]:
        """End everything and remove data and addresses; logs stay until the next start.

        Returns a line for each process that did not end when it was told to; it is gone too.
        """
        problems = [text for name in (SCHEDULER, CONTROLLERS, API, ETCD) if (text := self._end(name))]
        for pid in self.processes():
            sweep.kill(pid)
        self.network.remove_all()
        for folder in (self.run, self.data):
            shutil.rmtree(folder, ignore_errors=True)
        return problems

    def processes(self) -> dict[int, str]:
        """Process ids and command lines of everything that works on this control plane's data."""
        return sweep.processes(f"{self.data}/etcd", f"{self.plan.pki}/", f"kubeconfig={self.data}/")

    def start_api(self) -> None:
        """Start the API server again and wait until it is ready; harmless when it runs."""
        self._start_api()
        self._start_clients()  # the controllers end when the API server goes away while they start

    def _start_api(self) -> None:
        self._service(API).start()
        self.wait(self._ready, 90, "the API server is ready", API)

    def _start_clients(self) -> None:
        for name in (CONTROLLERS, SCHEDULER):
            self._service(name).start()

    def stop_api(self) -> None:
        """Stop the API server alone, at once, as in an outage."""
        self._service(API).stop(number=_STOP[API])

    def restart(self, name: str, **changed: str) -> None:
        """Start one program anew with other values of some flags, as in cluster_signing_duration="2m"."""
        words = {flag.replace("_", "-"): value for flag, value in changed.items()}
        self._changed[name] = self._changed.get(name, {}) | words
        self._service(name).stop(number=_STOP.get(name, signal.SIGTERM))
        self._service(name).start()
        if name == API:
            self.start_api()

    # -- credentials

    @property
    def admin(self) -> Path:
        """The kubeconfig of somebody who may do everything."""
        return self.plan.kubeconfig("admin")

    def node(self, name: str, *, hours: float = 24) -> Path:
        """The kubeconfig of a node, with a certificate that is valid for some hours."""
        return self._client(f"node-{name}", f"system:node:{name}", "system:nodes", hours=hours)

    def node_address(self, name: str) -> str:
        """The address of a node on this machine, which its pods and the API server reach."""
        if name not in self._nodes:
            self._nodes.append(name)
        address = self.network.address(3, self._nodes.index(name) + 1)
        self.network.add(address)
        return address

    def bootstrap(self, name: str = "bootstrap", *, token: str = "") -> Path:
        """A kubeconfig with a bootstrap token: `token` as in "abcdef.0123456789abcdef", or a fresh one."""
        token = token or bootstrap.new_token()
        self.kubectl("apply", "-f", "-", text=bootstrap.secret(token))
        target = self.plan.kubeconfig(name)
        return certs.kubeconfig(target, self.plan.server, self.authority.certificate, {"token": token})

    def _credentials(self) -> None:
        self.authority = certs.Authority(self.plan.pki)
        certs.signing_pair(self.plan.pki, "sa")
        names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]
        self.authority.issue("apiserver", "kube-apiserver", hosts=[self.plan.address, "127.0.0.1", *names])
        self.authority.issue("kubelet-client", "kube-apiserver-kubelet-client", ["system:masters"])
        self._client("admin", "admin", "system:masters")
        self._client("controllers", "system:kube-controller-manager")
        self._client("scheduler", "system:kube-scheduler")

    def _client(self, name: str, user: str, *groups: str, hours: float = 24) -> Path:
        certificate, key = self.authority.issue(name, user, groups, hours=hours)
        words = {"client-certificate": certificate, "client-key": key}
        return certs.kubeconfig(self.plan.kubeconfig(name), self.plan.server, self.authority.certificate, words)

    # -- use

    def kubectl(self, *words: str, text: str | None = None, timeout: float = 120) -> str:
        """Run kubectl as administrator; `text` is its standard input. Raises RigError when it fails."""
        program = self.programs / "kubectl"
        home = {"HOME": str(self.data)}  # where it keeps what it learnt of the API
        return run([program, f"--kubeconfig={self.admin}", *words], timeout=timeout, text=text, env=home)

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Create or change objects; one without a namespace goes into `default`."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", text=json.dumps(listed))

    def get(self, path: str, *, timeout: float = 10) -> dict[str, Any]:
        """GET an object or a list. Raises urllib.error.HTTPError when the API server refuses."""
        return json.loads(self.request("GET", path, timeout=timeout))

    def find(self, path: str) -> dict[str, Any] | None:
        """GET an object, None when there is none."""
        try:
            return self.get(path)
        except urllib.error.HTTPError as error:
            if error.code == _NOT_FOUND:
                return None
            raise

    def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *,
        kind: str = "application/json", timeout: float = 10,
    ) -> bytes:
        """Call the API as administrator; return the answer. `kind` is the body's media type."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.plan.server + path, data, {"Content-Type": kind}, method=method)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._context())
        )
        with opener.open(request, timeout=timeout) as answer:
            return bytes(answer.read())

    def connection(self, timeout: float) -> http.client.HTTPSConnection:
        """A connection to the API as administrator, as a watch needs one of its own; the caller closes it."""
        return http.client.HTTPSConnection(self.plan.address, self.plan.port, timeout=timeout, context=self._context())

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.authority.certificate))
        context.load_cert_chain(self.plan.pki / "admin.crt", self.plan.pki / "admin.key")
        return context

    # -- namespaces, nodes, pods

    def make_namespace(self, name: str) -> None:
        """Make a namespace and wait until pods can be created in it."""
        self.kubectl("create", "namespace", name)
        needed = (f"serviceaccounts/{_DEFAULT}", "configmaps/kube-root-ca.crt")
        paths = [f"/api/v1/namespaces/{name}/{one}" for one in needed]
        self.wait(lambda: all(self.find(path) for path in paths), 30, f"namespace {name} can be used", CONTROLLERS)

    def remove_namespace(self, name: str, seconds: float = 40) -> None:
        """Delete a namespace; pods whose node is away are deleted by force after some seconds."""
        self.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")
        if not poll(lambda: self.find(f"/api/v1/namespaces/{name}") is None, seconds, every=0.2):
            self.kubectl("delete", "pods", "--all", "-n", name, "--force", "--grace-period=0")
            path = f"/api/v1/namespaces/{name}"
            self.wait(lambda: self.find(path) is None, seconds, f"namespace {name} is gone", CONTROLLERS)

    def wait_node(self, name: str, ready: bool = True, seconds: float = 60) -> dict[str, Any]:
        """Wait until a node's condition Ready is true (or else not true); return the Node."""

        def found() -> dict[str, Any] | None:
            node = self.find(f"/api/v1/nodes/{name}")
            return node if node and (condition(node, "Ready") == "True") is ready else None

        word = "Ready" if ready else "not Ready"
        return dict(self.wait(found, seconds, f"node {name} is {word}"))

    def pods(self, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """The pods of a namespace whose labels match, by name."""
        query = f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""
        listed = self.get(f"/api/v1/namespaces/{namespace}/pods{query}")["items"]
        return sorted(listed, key=lambda pod: str(pod["metadata"]["name"]))

    def wait_pods(
        self, namespace: str, count: int, selector: str = "", seconds: float = 90
    ) -> list[dict[str, Any]]:
        """Wait until there are exactly `count` pods and all are Ready and stay; return them."""

        def settled() -> list[dict[str, Any]] | None:
            listed = self.pods(namespace, selector)
            good = [pod for pod in listed if condition(pod, "Ready") == "True" and not leaving(pod)]
            return listed if len(listed) == len(good) == count else None

        if count == 0:
            self.wait(lambda: not self.pods(namespace, selector), seconds, f"no pods are left in {namespace}")
            return []
        try:
            return list(self.wait(settled, seconds, f"{count} pods are Ready in {namespace}"))
        except RigError as error:
            shown = self.kubectl("get", "pods", "-n", namespace, "-o", "wide")
            raise RigError(f"{error}\n{shown}\n{self.kubectl('get', 'events', '-n', namespace)[-3000:]}") from error

    # -- waiting

    def wait(self, done: Callable[[], Any], seconds: float, what: str, *logs: str) -> Any:
        """Return the first true value of `done`. Raises RigError that names `what`, with the end of some logs."""
        value = poll(done, seconds, every=0.1)
        if not value:
            tails = "".join(f"\n-- {name}\n{self._service(name).tail()}" for name in logs)
            raise RigError(f"not within {seconds:.0f} s: {what}{tails}")
        return value

    def _ready(self) -> bool:
        if not self._service(API).pid():
            raise RigError(f"the API server ended:\n{self._service(API).tail()}")
        try:
            return self.request("GET", "/readyz", timeout=3) == b"ok"
        except OSError:
            return False

    def _can_create_pods(self) -> bool:
        return self.find(f"/api/v1/namespaces/default/serviceaccounts/{_DEFAULT}") is not None

    # -- programs

    def _service(self, name: str) -> Service:
        given = {**controlplane.flags(self.plan)[name], **self._changed.get(name, {})}
        words = [f"--{flag}={value}" for flag, value in given.items()]
        return Service(name, [self.programs / name, *words], self.run / f"{name}.pid", self.log / f"{name}.log")

    def _end(self, name: str) -> str:
        try:
            self._service(name).stop(number=_STOP.get(name, signal.SIGTERM))
        except RigError as error:
            return str(error)
        return ""


def condition(found: Mapping[str, Any], kind: str) -> str:
    """The status of a condition of a node or pod, "" while it has none."""
    listed = found.get("status", {}).get("conditions") or []
    return next((str(one["status"]) for one in listed if one["type"] == kind), "")


def leaving(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]
