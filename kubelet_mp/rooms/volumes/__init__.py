"""The volumes room: makes the volumes of admitted pods ready, and takes them down when the pods have stopped.

What belongs here: which volumes a pod needs, one small module for each kind of volume, the order of setting
up and taking down, orphaned pod directories. What may not live here: system calls (kubelet_mp.host.mounts,
.removal, .ownership, .atomicdir), the mounts of containers (the pods room asks the runtime for them).
"""
