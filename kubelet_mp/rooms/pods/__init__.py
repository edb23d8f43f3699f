"""The pods room: admission, one worker per pod UID, and every CRI call that changes a pod's objects.

What belongs here: deciding what a pod needs (`actions`, `initactions`: pure), doing it in a pass of a
thread (`passes`, `start`, `kill`, `images`, `hooks`), and the main-thread state of each pod (`worker`).
What may not live here: listing the runtime (pleg), cgroups, mounts, probes, writes to the API server.
"""
