# A replacement is taken back before the old one is gone: it is kept. F012, F013.
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

engine.create_stack('foo', before)
engine.noop(5)
engine.call(verify, before)

engine.update_stack('foo', after)
engine.noop(4)
engine.call(counts, 'C', 2)
engine.rollback_stack('foo')
engine.noop(13)
engine.call(verify, before)

engine.delete_stack('foo')
engine.noop(6)
engine.call(verify, Template())
