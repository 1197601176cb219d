# F033: code of a resource type raises what is not even an ordinary error.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.raises('B')
engine.create_stack('foo', first)
engine.settle()
engine.works('B')
engine.raises('A', action='UPDATE')
engine.update_stack('foo', second)
engine.settle()
engine.works('A')
engine.raises('A', action='DELETE')
engine.delete_stack('foo')
engine.settle()
engine.works('A')
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
