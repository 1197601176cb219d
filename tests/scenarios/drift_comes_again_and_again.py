# Somebody else keeps changing an object: it is put right a few times, then given up; what else changes is put right.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
}, drift_policy='repair')
other = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': 'one'}),
}, drift_policy='repair')

def is_changed():
    test.assertEqual(1, len(reality.resources_by_logical_name('A')))
    test.assertNotIn('one', [thing.properties['a'] for thing in reality.resources_by_logical_name('A').values()])

engine.create_stack('foo', wanted)
engine.settle()
engine.harms('A', 'CHANGED', again=True)
engine.settle()
engine.call(is_changed)
engine.harms('B', 'GONE')
engine.settle()
engine.call(is_changed)
engine.update_stack('foo', other)
engine.settle()
engine.call(is_changed)
