# F068, F093: a service is busy, or something is in use; after a while the call works.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.is_busy('A', times=2)
engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)
engine.is_busy('B', times=2)
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
engine.is_busy('B', action='DELETE', times=2)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
