# F086, F097, F106, F114: a call does not return, whatever it is told. A cancel ends the stack all the same.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.blocks('B', action='CREATE')
engine.create_stack('foo', stack)
engine.noop(3)
engine.cancel('foo')
engine.settle()
engine.works('B')
engine.update_stack('foo', stack)
engine.settle()
engine.call(verify, stack)
