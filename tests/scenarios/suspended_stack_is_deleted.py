# A delete comes at any moment of a suspension.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', wanted)
engine.settle()
engine.suspend_stack('foo')
engine.noop(3)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
