# F037, F074: a create fails without rollback, then the stack is deleted.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'c': 'one'}),
})

engine.takes('C', 1.5)
engine.fails('B', action='CREATE', afterwards=True)
engine.create_stack('foo', stack)
engine.noop(3)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
