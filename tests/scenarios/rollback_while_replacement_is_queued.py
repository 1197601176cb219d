# F005, F006, F029: the row of a replacement exists and its message is on the way when the update is rolled back.
first = Template({
    'A': RsrcDef({'!a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'!a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.update_stack('foo', second)
engine.noop(1)
engine.rollback_stack('foo')
engine.noop(9)
engine.call(verify, first)
