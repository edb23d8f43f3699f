"""The configuration of a private containerd and of its pod network: text in, text out."""

from __future__ import annotations

import json

from integration.rig import images
from integration.rig.layout import Binaries, Layout


def containerd(layout: Layout, bins: Binaries, major: int, *, restrict_oom: bool) -> str:
    """Return containerd's configuration file for major version 1 or 2.

    `restrict_oom` is needed where the daemon may not lower oom_score_adj (no CAP_SYS_RESOURCE).
    """
    return _version_1(layout, bins, restrict_oom) if major < 2 else _version_2(layout, bins, restrict_oom)


def _common(layout: Layout, version: int) -> str:
    return f"""\
version = {version}
root = "{layout.data}/containerd"
state = "{layout.run}/state"
[grpc]
  address = "{layout.socket}"
[ttrpc]
  address = "{layout.socket}.ttrpc"
[debug]
  level = "info"
[plugins."io.containerd.internal.v1.opt"]
  path = "{layout.data}/opt"
"""


def _runtimes(layout: Layout, bins: Binaries, section: str) -> str:
    return f"""\
[plugins.{section}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.{section}.containerd.runtimes.runc.options]
  BinaryName = "{bins.runc}"
  Root = "{layout.run}/runc"
  SystemdCgroup = false
"""


def _version_1(layout: Layout, bins: Binaries, restrict_oom: bool) -> str:
    section = '"io.containerd.grpc.v1.cri"'
    return f"""\
{_common(layout, 2)}
[plugins.{section}]
  sandbox_image = "{images.PAUSE}"
  restrict_oom_score_adj = {str(restrict_oom).lower()}
  netns_mounts_under_state_dir = true
[plugins.{section}.cni]
  bin_dir = "{bins.cni}"
  conf_dir = "{layout.run}/net.d"
{_runtimes(layout, bins, section)}"""


def _version_2(layout: Layout, bins: Binaries, restrict_oom: bool) -> str:
    section = '"io.containerd.cri.v1.runtime"'
    return f"""\
{_common(layout, 3)}
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{images.PAUSE}"
[plugins.{section}]
  restrict_oom_score_adj = {str(restrict_oom).lower()}
  netns_mounts_under_state_dir = true
[plugins.{section}.cni]
  bin_dirs = ["{bins.cni}"]
  conf_dir = "{layout.run}/net.d"
{_runtimes(layout, bins, section)}"""


def network(layout: Layout) -> str:
    """Return the CNI network list: a bridge of its own, addresses from the layout's subnet, host ports."""
    ipam = {
        "type": "host-local",
        "dataDir": f"{layout.data}/leases",
        "ranges": [[{"subnet": layout.subnet}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": layout.bridge,
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": ipam,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "1.0.0", "name": layout.network, "plugins": [bridge, ports]}, indent=1)
