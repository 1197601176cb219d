# A removal is taken back before it has happened: the resource is still the same one. F009, F077.
physical = []


def remember():
    physical[:] = reality.resources_by_logical_name('B')


usual = Template({
    'A': RsrcDef({}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'a': '4alpha'}, ['A', 'B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', 'a')}, []),
})
smaller = Template({
    'A': RsrcDef({}, []),
    'C': RsrcDef({'a': '4alpha'}, ['A']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', 'a')}, []),
})
engine.create_stack('foo', usual)
engine.noop(5)
engine.call(verify, usual)
engine.call(remember)

engine.update_stack('foo', smaller)
engine.noop(2)
engine.call(lambda: test.assertEqual(physical, list(reality.resources_by_logical_name('B'))))
engine.rollback_stack('foo')
engine.noop(11)
engine.call(verify, usual)
