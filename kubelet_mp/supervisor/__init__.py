"""The parent process: forks the rooms, reaps them, routes what they say, tells systemd how they are.

It has no threads and does no I/O of its own beyond links, pids and the notify socket: a process that forks
must be simple. It knows nothing of pods.
"""
