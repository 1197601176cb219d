# F077: the update has begun to remove what the rollback wants back.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
})
second = Template({
    'A': RsrcDef({'a': 'one'}),
    'N': RsrcDef({'b': 'one'}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.takes('B', 1.5)
engine.update_stack('foo', second)
engine.noop(4)
engine.rollback_stack('foo')
engine.settle()
engine.call(verify, first)
