# F023: whoever updates A dies. After five of them nobody tries it any more, and the operation fails; an update repairs it.
first = Template({'A': RsrcDef({'a': 'one'})})
second = Template({'A': RsrcDef({'a': 'two'})})
third = Template({'A': RsrcDef({'a': 'three'})})

engine.create_stack('foo', first)
engine.settle()
engine.blocks('A', action='UPDATE', times=None)
engine.update_stack('foo', second)
for _ in range(8):
    engine.noop(6)
    engine.pass_time(60.0)
    engine.crash_worker()
engine.settle()
engine.works('A')
engine.update_stack('foo', third)
engine.settle()
engine.call(verify, third)
