# F059, F065: the old parent goes in the same update in which its child moves to a new one.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'N': RsrcDef({'n': 'new'}),
    'B': RsrcDef({'b': GetRes('N')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.update_stack('foo', second)
engine.noop(3)
engine.update_stack('foo', first)
engine.noop(3)
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
