# An empty template, filled and emptied again.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', Template())
engine.noop(1)
engine.update_stack('foo', stack)
engine.noop(4)
engine.update_stack('foo', Template())
engine.noop(4)
engine.update_stack('foo', stack)
engine.settle()
engine.call(verify, stack)
