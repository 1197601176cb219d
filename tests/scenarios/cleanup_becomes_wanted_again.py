# F009, F071, F077: a resource is wanted again while it is being removed.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
})
second = Template({
    'A': RsrcDef({'a': 'one'}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.takes('B', 1.5)
engine.update_stack('foo', second)
engine.noop(2)
engine.update_stack('foo', first)
engine.settle()
engine.call(verify, first)
