# F095: a stack is deleted and another of the same name is created.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', stack)
engine.settle()
engine.refuses('create_stack', 'foo', stack)
engine.delete_stack('foo')
engine.settle()
engine.create_stack('foo', stack)
engine.settle()
engine.call(verify, stack)
