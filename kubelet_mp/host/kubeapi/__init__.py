"""The API server: one object at a time (`KubeApi`), or a collection kept in view (`ListWatch`).

What belongs here: credentials from kubeconfig files, HTTP, TLS, and the protocol of lists and watches. Objects
are plain decoded JSON.
What may not live here: what any object means, stores of objects, retries of writes (whoever writes knows
whether the write still matters).
"""

from kubelet_mp.host.kubeapi.client import KubeApi, api_for
from kubelet_mp.host.kubeapi.credentials import Credentials, Kubeconfig, Login
from kubelet_mp.host.kubeapi.listwatch import ListWatch

__all__ = ["Credentials", "KubeApi", "Kubeconfig", "ListWatch", "Login", "api_for"]
