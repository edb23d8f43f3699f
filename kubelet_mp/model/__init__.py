"""Pure knowledge of a kubelet: pods, what the runtime says of them, phases, resources, back-off, time.

Nothing here opens a file, a socket or a clock of its own; whatever is needed from outside is passed in.
It imports nothing from the other packages but `errors`.
"""
