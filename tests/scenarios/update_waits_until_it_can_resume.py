# What an update has to resume is busy for a while: that is tried again, and nothing else is done to it before.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}, patience={'retry': {'attempts': 9}}),
})

engine.create_stack('foo', wanted)
engine.settle()
engine.fails('A', action='SUSPEND', times=None)
engine.suspend_stack('foo')
engine.settle()
engine.is_busy('B', action='RESUME', times=4)
engine.update_stack('foo', wanted)
engine.settle()
engine.call(verify, wanted)
