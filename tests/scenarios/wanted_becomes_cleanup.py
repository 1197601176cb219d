# F009: a resource is not wanted any more while it is being made.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
})
second = Template({
    'A': RsrcDef({'a': 'one'}),
})

engine.takes('B', 1.5)
engine.create_stack('foo', first)
engine.noop(2)
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
