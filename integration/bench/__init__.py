"""What kubelet-mp costs: time until pods run and are gone, CPU and memory, against straight calls of the runtime.

Here belongs what measures and prints. Starting the parts is integration.rig's business; nothing here is a test.
"""
