# An addition is taken back before the new resource has begun. F018.
usual = Template({
    'A': RsrcDef({}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'a': '4alpha'}, ['A', 'B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', 'a')}, []),
})
larger = Template({
    'A': RsrcDef({}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'a': '4alpha'}, ['A', 'B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', 'a')}, []),
    'F': RsrcDef({}, ['D']),
})

engine.create_stack('foo', usual)
engine.noop(5)
engine.call(verify, usual)

engine.update_stack('foo', larger)
engine.noop(4)
engine.rollback_stack('foo')
engine.noop(12)
engine.call(verify, usual)
