# F086, F088, F114: the call that removes an object never returns. The delete ends at its time, and a second one works.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.time_limit('foo', 2)
engine.create_stack('foo', stack)
engine.settle()
engine.blocks('B', action='DELETE')
engine.delete_stack('foo')
engine.noop(2)
engine.delete_stack('foo')
engine.settle()
engine.works('B')
engine.delete_stack('foo')
engine.settle()
