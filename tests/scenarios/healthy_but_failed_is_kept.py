# F069: a create failed after the object was there and in order; the next update keeps the object.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.fails('A', action='CREATE', afterwards=True)
engine.create_stack('foo', first)
engine.settle()
engine.update_stack('foo', first)
engine.settle()
engine.call(verify, first)
engine.call(lambda: test.assertEqual(2, len(reality.made)))
