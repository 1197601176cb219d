# What was to be repaired is only to be reported from an update on, and the other way round, also in nested stacks.
def template(policy, value):
    nested = Template({'D': RsrcDef({'d': 'one'})})
    return Template({
        'A': RsrcDef({'a': 'one'}),
        'B': RsrcDef({'b': value}),
        'C': RsrcDef({'c': 'one'}, nested=nested),
    }, drift_policy=policy)

def nothing_is_repaired():
    test.assertNotEqual(['one'], [thing.properties['a'] for thing in reality.resources_by_logical_name('A').values()])
    test.assertEqual({}, reality.resources_by_logical_name('D'))

def everything_is_repaired():
    test.assertEqual(['one'], [thing.properties['a'] for thing in reality.resources_by_logical_name('A').values()])
    test.assertEqual(1, len(reality.resources_by_logical_name('D')))

engine.create_stack('foo', template('repair', 'one'))
engine.settle()
engine.update_stack('foo', template('report', 'two'))
engine.harms('A', 'CHANGED')
engine.noop(3)
engine.harms('D', 'GONE')
engine.settle()
engine.pass_time(100)
engine.settle()
engine.update_stack('foo', template('repair', 'two'))
engine.settle()
engine.call(everything_is_repaired)
engine.update_stack('foo', template('report', 'three'))
engine.settle()
engine.harms('A', 'CHANGED')
engine.harms('D', 'GONE')
engine.pass_time(100)
engine.settle()
engine.call(nothing_is_repaired)
