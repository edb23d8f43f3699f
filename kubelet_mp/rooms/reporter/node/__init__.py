"""The Node object of this node: registration, status, lease, and the newest state of it for the other rooms.

What belongs here: pure modules that say what the Node should be (seen, conditions, status, difference,
registration), and the threads that bring the API server to it (worker, lease, watch), put together in `duty`.
What may not live here: measuring the machine or asking the runtime; other rooms tell of both.
"""
