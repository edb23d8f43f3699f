"""Stand-ins for what the agent talks to: a CRI server on a real unix socket, a supervisor's link, a clock.

What belongs here: fakes that more than one test module uses. Nothing of the agent imports them.
"""
