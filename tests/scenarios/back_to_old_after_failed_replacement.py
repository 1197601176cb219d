# F013: a replacement fails. The user goes back to the old template: the old resource is kept, the other removed.
kept = []


def remember():
    kept[:] = reality.resources_by_logical_name('A')


def same():
    test.assertEqual(kept, list(reality.resources_by_logical_name('A')))


first = Template({
    'A': RsrcDef({'!a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'!a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)
engine.call(remember)
engine.fails('A', action='CREATE', times=None)
engine.update_stack('foo', second)
engine.settle()
engine.works('A')
engine.update_stack('foo', first)
engine.settle()
engine.call(verify, first)
engine.call(same)
