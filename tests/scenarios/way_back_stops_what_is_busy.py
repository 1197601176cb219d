"""An update is cancelled and rolled back while a worker is busy with a call: the worker is told at once."""

first = Template({'A': RsrcDef({'v': 1})})
second = Template({'A': RsrcDef({'v': 2}), 'B': RsrcDef({'a': GetRes('A')})})
engine.create_stack('site', first)
engine.settle()
engine.blocks('A', 8, action='UPDATE', afterwards=True)
engine.update_stack('site', second)
engine.noop(2)
engine.pass_time(1)
engine.cancel_and_roll_back('site')
engine.settle()
