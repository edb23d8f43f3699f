"""The http room: the kubelet's HTTP interfaces (10250, 10255, 10248) and the local socket of the command line.

What belongs here: Flask applications, the gunicorn worker that serves them, TLS, authentication and
authorization, the views of what other rooms reported.
What may not live here: state that another room owns, anything that changes a pod, and a second supervisor:
gunicorn's arbiter (it forks, and waits for every child) is not used, one of its threaded workers runs inside
the room and our own supervisor stands behind it.
"""
