# Objects are removed again and again, and the first repair of each fails, of one before anything is made: the next count on.
def template(name):
    return Template({name: RsrcDef({'a': 'one'}), 'B': RsrcDef({'b': 'one'})}, drift_policy='repair')

def are_given_up():
    test.assertEqual({}, reality.resources_by_logical_name('A'))
    test.assertEqual({}, reality.resources_by_logical_name('C'))
    test.assertEqual(2, len(reality.resources_by_logical_name('B')))

engine.create_stack('foo', template('A'))
engine.create_stack('bar', template('C'))
engine.settle()
engine.fails('A', action='CREATE', times=1)
engine.fails('C', action='CREATE', times=1, afterwards=True)
engine.harms('A', 'GONE', again=True)
engine.harms('C', 'GONE', again=True)
engine.settle()
engine.pass_time(200)
engine.settle()
engine.call(are_given_up)
