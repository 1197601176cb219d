# F085, F106: a delete hangs and is cancelled: it has failed at once, what was running is told, and the next one ends.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', stack)
engine.settle()
engine.hangs('B', action='DELETE', times=None)
engine.delete_stack('foo')
engine.noop(3)
engine.cancel('foo')
engine.settle()
engine.says('foo', 'DELETE_FAILED: Stack DELETE cancelled')
engine.works('B')
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
