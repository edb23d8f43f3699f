"""What runs the agent against real parts: the rig that brings them up, the tests, the quickstart, the bench.

Nothing here is part of the agent, and the agent imports nothing from here.
"""
