# F059: A needed B, now B needs A, and both are changed in place.
first = Template({
    'A': RsrcDef({'a': 'one'}, ['B']),
    'B': RsrcDef({'b': 'one'}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': 'two'}, ['A']),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.update_stack('foo', second)
engine.noop(5)
engine.call(verify, second)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
