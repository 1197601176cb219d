"""A service does not know for some time of what it has just made, and the worker that asked for it dies: the search
goes on until it must have been found."""

wanted = Template({'A': RsrcDef({'v': 1}), 'B': RsrcDef({'a': GetRes('A')})})
engine.answers('A', 'FIND', 'LIES', seconds=20, times=None)
engine.create_stack('site', wanted)
engine.noop(1)
engine.crash_worker()
engine.settle()
engine.call(verify, wanted)
engine.delete_stack('site')
engine.settle()
engine.call(verify, Template())
