"""The only worker that does anything dies in a call, wherever the messages go: another one finds out what was made."""

engine.blocks('A', 8, afterwards=True)
engine.create_stack('site', Template({'A': RsrcDef({'v': 1})}))
engine.noop(3)
engine.crash_worker()
engine.works('A')
engine.settle()
engine.call(verify, Template({'A': RsrcDef({'v': 1})}))
