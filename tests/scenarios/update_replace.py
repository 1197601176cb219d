# A changed property makes a replacement necessary; then a resource is added.
physical = []


def remember():
    physical[:] = reality.resources_by_logical_name('C')


def replaced():
    test.assertNotEqual(physical, list(reality.resources_by_logical_name('C')))


before = Template({
    'A': RsrcDef({'a': 'initial'}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'!a': GetAtt('A', 'a')}, ['B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', '!a')}, []),
})
after = Template({
    'A': RsrcDef({'a': 'updated'}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'!a': GetAtt('A', 'a')}, ['B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', '!a')}, []),
})
more = Template({
    'A': RsrcDef({'a': 'updated'}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'!a': GetAtt('A', 'a')}, ['B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', '!a')}, []),
    'F': RsrcDef({}, ['D', 'E']),
})

engine.create_stack('foo', before)
engine.noop(5)
engine.call(verify, before)
engine.call(remember)

engine.update_stack('foo', after)
engine.noop(11)
engine.call(verify, after)
engine.call(replaced)

engine.update_stack('foo', more)
engine.noop(11)
engine.call(verify, more)

engine.delete_stack('foo')
engine.noop(7)
engine.call(verify, Template())
