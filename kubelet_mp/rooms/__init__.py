"""The rooms: one forked process, one package, one concern each.

A room owns its state and rebuilds it from its source of truth after any death. Rooms never import each
other; they speak through `wire.messages`. In each package: `room` (glue), pure decisions, effects.
"""
