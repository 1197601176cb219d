"""A deletion is cancelled patiently, and asked for again before what it waits for has ended: then it is wanted."""

engine.create_stack('s', Template({'A': RsrcDef({}), 'B': RsrcDef({'a': GetRes('A')})}))
engine.settle()
engine.takes('B', 20)
engine.delete_stack('s')
engine.noop(1)
engine.cancel_patiently('s')
engine.delete_stack('s')
engine.settle()
