"""How rooms speak: the messages, and the link (a queue pair) that carries them.

Messages are facts or orders made of plain data. No client objects, exceptions or callables travel, and no
decision is taken here.
"""
