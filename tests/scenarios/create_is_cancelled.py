# F097, F106: a create is stopped; nothing begins after that, and the next update finishes it.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.takes('B', 1.5)
engine.create_stack('foo', stack)
engine.noop(2)
engine.cancel('foo')
engine.settle()
engine.update_stack('foo', stack)
engine.settle()
engine.call(verify, stack)
