# F055: each of five updates supersedes the one before. The resource is made once.
first = Template({
    'A': RsrcDef({'a': 'first'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'second'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
third = Template({
    'A': RsrcDef({'a': 'third'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
fourth = Template({
    'A': RsrcDef({'a': 'fourth'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
fifth = Template({
    'A': RsrcDef({'a': 'fifth'}),
    'B': RsrcDef({'b': GetRes('A')}),
})


def once():
    test.assertEqual([1, 1], sorted(reality.made.values()))


engine.create_stack('foo', first)
engine.update_stack('foo', second)
engine.noop(1)
engine.update_stack('foo', third)
engine.noop(1)
engine.update_stack('foo', fourth)
engine.noop(1)
engine.update_stack('foo', fifth)
engine.settle()
engine.call(verify, fifth)
engine.call(once)
