# What is reported, or ignored, engines leave as it is; what is said of a resource goes before what is said of its stack.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'c': 'one'}),
    'D': RsrcDef({'d': 'one'}),
}, drift_policy='report', drift={'C': 'ignore', 'D': 'repair'})

def properties(name):
    return [thing.properties[name.lower()] for thing in reality.resources_by_logical_name(name).values()]

def only_d_is_repaired():
    test.assertNotEqual(['one'], properties('A'))
    test.assertEqual([], properties('C'))
    test.assertEqual(['one'], properties('D'))

engine.create_stack('foo', wanted)
engine.settle()
engine.harms('A', 'CHANGED')
engine.harms('C', 'GONE')
engine.harms('D', 'CHANGED')
engine.pass_time(200)
engine.settle()
engine.call(only_d_is_repaired)
