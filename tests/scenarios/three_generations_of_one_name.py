# F054, F072: a resource is replaced again and again before the older ones are gone.
first = Template({
    'A': RsrcDef({'!a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'!a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
third = Template({
    'A': RsrcDef({'!a': 'three'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.takes('A', 1.5)
engine.update_stack('foo', second)
engine.noop(4)
engine.update_stack('foo', third)
engine.noop(4)
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
