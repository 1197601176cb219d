# A replacement is taken back; then the same resource is updated in place, at once. F012.
before = Template({
    'A': RsrcDef({'a': 'initial'}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'!a': GetAtt('A', 'a'), 'b': 'val1'}, ['B']),
})
after = Template({
    'A': RsrcDef({'a': 'updated'}, []),
    'B': RsrcDef({}, []),
    'newC': RsrcDef({'!a': GetAtt('A', 'a'), 'b': 'val1'}, ['B']),
})
changed = Template({
    'A': RsrcDef({'a': 'initial'}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'!a': GetAtt('A', 'a'), 'b': 'val2'}, ['B']),
})
engine.create_stack('foo', before)
engine.noop(3)
engine.call(verify, before)

engine.update_stack('foo', after)
engine.noop(3)
engine.rollback_stack('foo')
engine.noop(12)
engine.call(verify, before)

engine.update_stack('foo', changed)
engine.noop(3)
engine.call(verify, changed)

engine.delete_stack('foo')
engine.noop(4)
engine.call(verify, Template())
