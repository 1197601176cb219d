# F020, F027, F085: a stack is deleted while a call is stuck that makes its object only after it was given up.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
})

engine.blocks('B', 30, action='CREATE')
engine.create_stack('foo', stack)
engine.noop(3)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
