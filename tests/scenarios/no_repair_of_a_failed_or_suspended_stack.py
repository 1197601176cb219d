# While a stack is suspended, or a user's update of it has failed, nothing is repaired; once it is up again, it is.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
}, drift_policy='repair')
more = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'two'}),
}, drift_policy='repair')

def is_changed():
    test.assertNotEqual(['one'], [thing.properties['a'] for thing in reality.resources_by_logical_name('A').values()])

engine.create_stack('foo', wanted)
engine.settle()
engine.suspend_stack('foo')
engine.settle()
engine.harms('A', 'CHANGED')
engine.pass_time(100)
engine.settle()
engine.call(is_changed)
engine.resume_stack('foo')
engine.settle()
engine.call(verify, wanted)
engine.fails('B', action='UPDATE', times=1)
engine.update_stack('foo', more)
engine.settle()
engine.harms('A', 'CHANGED')
engine.pass_time(100)
engine.settle()
engine.call(is_changed)
engine.update_stack('foo', more)
engine.settle()
engine.call(verify, more)
