"""The reporter room: what happened, told to whoever wants to know.

What belongs here: duties, each in a module of its own, that get every message: the timelines of pods, and
with an API server the writers of events, pod status, the Node and its lease.
What may not live here: decisions about pods; the reporter only tells.
"""
