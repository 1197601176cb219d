# F068: somebody else removes an object; the update that finds out fails, the next one makes a new object.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.vanishes('A')
engine.update_stack('foo', second)
engine.settle()
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
