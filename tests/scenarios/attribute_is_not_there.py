# F035: a resource uses an attribute that the other one does not have.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'missing')}),
})

engine.create_stack('foo', stack)
engine.settle()
engine.call(verify, stack)
