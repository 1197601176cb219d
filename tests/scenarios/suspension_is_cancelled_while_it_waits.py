# A suspension is cancelled while B only waits to be suspended once more; an update wakes up whatever has come of it.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}, patience={'retry': {'attempts': 9}}),
})

engine.create_stack('foo', wanted)
engine.settle()
engine.is_busy('B', action='SUSPEND', times=None)
engine.suspend_stack('foo')
engine.noop(2)
engine.cancel('foo')
engine.update_stack('foo', wanted)
engine.settle()
engine.call(verify, wanted)
