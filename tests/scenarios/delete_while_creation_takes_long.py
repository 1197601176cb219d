# F085, F086: a stack is deleted while one of its resources is slowly being made.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.takes('B', 25)
engine.create_stack('foo', stack)
engine.noop(3)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
