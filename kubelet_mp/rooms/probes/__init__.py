"""The probes room: runs liveness, readiness and startup probes and says when a verdict changes.

Its source of truth is what pods are admitted and what the runtime runs. It restarts and kills nothing.
"""
