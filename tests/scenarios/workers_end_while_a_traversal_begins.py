# F019: workers of an old traversal finish while a new one is being planned.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', first)
engine.update_stack('foo', second)
engine.noop(4)
engine.update_stack('foo', first)
engine.settle()
engine.call(verify, first)
