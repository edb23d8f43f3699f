"""The housekeeping room: keeps the node from filling up.

What belongs here: rotation of container logs, removal of dead containers, sandboxes and their logs, and the list
of images for whoever reports it.
What may not live here: anything that stops or starts what runs; that is the pods room's.
"""
