"""The upstream kubelet in the place of the agent, for tests of the rig and for comparisons."""

from __future__ import annotations

from integration.rig import goparts
from integration.rig.agent import Agent


class UpstreamKubelet(Agent):
    """Started, configured, watched and removed as the agent is."""

    def command(self) -> list[str]:
        return [
            str(goparts.ensure_cluster() / "kubelet"),
            *("--config", str(self.config_file)),
            *("--root-dir", str(self.root), "--cert-dir", str(self.home / "pki")),
            *("--hostname-override", self.node, *self.flags),
        ]
