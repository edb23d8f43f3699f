"""What volumes hold that comes from the API server: ConfigMaps, Secrets and service account tokens.

What belongs here: keeping or fetching single named objects for as long as pods need them (node authorization
grants no more), and tokens with their renewal. What may not live here: files, mounts, and which volumes a pod has.
"""
