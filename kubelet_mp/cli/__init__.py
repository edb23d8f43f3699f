"""Commands that a person types on the node: `check` before starting, `pods`, `why` and `logs` while it runs.

What belongs here: one module a command with `run(argv) -> exit code`, and the pure parts that it prints.
What may not live here: anything that the agent itself needs, and changes to pods or containers.
"""
