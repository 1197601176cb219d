# An update comes before what the last one replaced is gone. F072.
def counts(name, number):
    test.assertEqual(number, len(reality.resources_by_logical_name(name)))


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

engine.update_stack('foo', after)
engine.noop(5)
engine.call(counts, 'C', 2)
engine.update_stack('foo', more)
engine.noop(14)
engine.call(verify, more)

engine.delete_stack('foo')
engine.noop(7)
engine.call(verify, Template())
