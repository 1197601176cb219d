# I12: two stacks that have the same names for everything, each operation on one of them only.
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
engine.create_stack('bar', second)
engine.noop(3)
engine.update_stack('foo', second)
engine.noop(2)
engine.delete_stack('bar')
engine.settle()
engine.call(verify, second)
