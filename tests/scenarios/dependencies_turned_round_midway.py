# F059: dependencies are turned round, and back again while that happens.
first = Template({
    'A': RsrcDef({'!a': 'one'}, ['B']),
    'B': RsrcDef({'!b': 'one'}),
})
second = Template({
    'A': RsrcDef({'!a': 'two'}),
    'B': RsrcDef({'!b': 'two'}, ['A']),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.update_stack('foo', second)
engine.noop(2)
engine.update_stack('foo', first)
engine.noop(3)
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
