"""A stack is deleted while a worker is busy with a call that takes its time: the worker is told at once."""

engine.blocks('A', 8, afterwards=True)
engine.create_stack('site', Template({'A': RsrcDef({'v': 1}), 'B': RsrcDef({'a': GetRes('A')})}))
engine.noop(2)
engine.pass_time(1)
engine.delete_stack('site')
engine.settle()
engine.call(verify, Template())
