"""The sources room: which pods this node shall run, from manifest files, a manifest URL and the API server.

What belongs here: one small class a source behind `Source`, the merge of what they say, and its messages.
What may not live here: how a manifest is decoded or judged (`model.manifest`), and anything about running
pods.
"""
