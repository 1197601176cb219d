# F104: two cancels come one after the other, or at the same time as the end.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.takes('A', 1.5)
engine.update_stack('foo', second)
engine.noop(1)
engine.cancel_and_roll_back('foo')
engine.cancel_and_roll_back('foo')
engine.noop(1)
engine.cancel('foo')
engine.settle()
