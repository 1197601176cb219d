# A replacement by hand is taken back half-way.
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
    'newC': RsrcDef({'!a': GetAtt('A', 'a')}, ['B']),
    'D': RsrcDef({'c': GetRes('newC')}, []),
    'E': RsrcDef({'ca': GetAtt('newC', '!a')}, []),
})

engine.create_stack('foo', before)
engine.noop(5)
engine.call(verify, before)

engine.update_stack('foo', after)
engine.noop(3)
engine.rollback_stack('foo')
engine.noop(13)
engine.call(verify, before)

engine.delete_stack('foo')
engine.noop(6)
engine.call(verify, Template())
