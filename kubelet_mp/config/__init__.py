"""Configuration: flags, KubeletConfiguration and drop-ins, merged once into one frozen Settings.

Precedence, low to high: built-in defaults, the --config file, drop-ins of --config-dir in lexical order,
flags. What belongs here: reading, merging, defaulting and validating, and the pure checks of a
configuration against facts about the host (preflight).
What may not live here: gathering those facts, acting on the settings, and imports of anything but errors, log
and the leaf modules model.clock and model.quantity (durations and quantities).
"""

from kubelet_mp.config.model import KubeletConfiguration
from kubelet_mp.config.settings import KUBERNETES_VERSION, Settings

__all__ = ["KUBERNETES_VERSION", "KubeletConfiguration", "Settings"]
