"""A sibling has failed, and so has the stack, while a worker is busy with a call: the delete tells it to stop at once."""

engine.blocks('A', 8, afterwards=True)
engine.fails('B')
engine.create_stack('site', Template({'A': RsrcDef({'v': 1}), 'B': RsrcDef({'v': 1})}))
engine.noop(4)
engine.pass_time(1)
engine.delete_stack('site')
engine.settle()
engine.call(verify, Template())
