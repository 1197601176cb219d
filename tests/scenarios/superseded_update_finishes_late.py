# F001: an update finds a resource still held by the one before it. When that one is done with it, somebody has to
# tell the newer.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.takes('A', 1.5)
engine.create_stack('foo', first)
engine.noop(1)
engine.update_stack('foo', second)
engine.noop(8)
engine.settle()
engine.call(verify, second)
