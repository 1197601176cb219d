# F058, F069: an update in place fails half-way. The same template again repairs the resource, it is not replaced.
kept = []


def remember():
    kept[:] = reality.resources_by_logical_name('A')


def same():
    test.assertEqual(kept, list(reality.resources_by_logical_name('A')))


first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)
engine.call(remember)
engine.fails('A', action='UPDATE', afterwards=True)
engine.update_stack('foo', second)
engine.settle()
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
engine.call(same)
