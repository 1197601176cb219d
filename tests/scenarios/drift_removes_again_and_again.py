# An object is removed again and again, each one that takes its place as well: that is given up too, and not counted anew.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
}, drift_policy='repair')

engine.create_stack('foo', wanted)
engine.settle()
engine.harms('A', 'GONE', again=True)
engine.settle()
engine.call(lambda: test.assertEqual({}, reality.resources_by_logical_name('A')))
engine.call(lambda: test.assertEqual(1, len(reality.resources_by_logical_name('B'))))
