"""Certificates of the node: the first client certificate by a bootstrap token, and the renewal of all.

What belongs here: when to ask for which certificate, the request at the API server, and the files that result.
What may not live here: keys' mathematics (host.pki), and who uses the certificates: they watch the files.
"""
