"""The cgroups room: the kubepods tree with its values, and the facts of the node (capacity, addresses).

What belongs here: the order in which cgroups are made and freed, and what capacity and addresses the node
claims. What may not live here: the values of a cgroup (kubelet_mp.model.resources), writing of control files
(kubelet_mp.host.cgroupfs), cgroups of containers (the runtime makes them), killing of processes.
"""
