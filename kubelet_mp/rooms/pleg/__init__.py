"""The room that watches the container runtime: its events, its listings, its health.

What belongs here: how the runtime's view of each pod is kept fresh. `diff` and `health` decide, `looking` and
`stream` ask the runtime, `room` holds the records and tells the other rooms.
What may not live here: any call that changes the runtime, and decisions about what a pod should be.
"""
