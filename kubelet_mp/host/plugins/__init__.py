"""Clients of gRPC services that run in pods or beside the node agent, except the container runtime (`host.cri`).

Nothing here decides; it asks with a deadline and says what came back.
"""
