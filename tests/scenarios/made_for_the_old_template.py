# F056: what was begun for the old template and is finished under the new one is kept.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.takes('A', 1.5)
engine.create_stack('foo', first)
engine.noop(1)
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
engine.call(lambda: test.assertEqual(1, len(reality.made) - 2))
