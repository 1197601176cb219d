# F086: a stack is deleted while the creation of a resource hangs.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.hangs('B', action='CREATE', times=None)
engine.create_stack('foo', stack)
engine.noop(3)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
