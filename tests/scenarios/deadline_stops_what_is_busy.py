"""The time of an operation is over while a worker is busy with a call: the worker is told at once."""

engine.time_limit('site', 1)
engine.blocks('A', 300, afterwards=True)
engine.create_stack('site', Template({'A': RsrcDef({'v': 1}), 'B': RsrcDef({'a': GetRes('A')})}))
engine.settle()
