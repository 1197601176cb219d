# A resource is removed, then comes back together with another. F054, F062.
usual = Template({
    'A': RsrcDef({}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'a': '4alpha'}, ['A', 'B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', 'a')}, []),
})
smaller = Template({
    'A': RsrcDef({}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'a': '4alpha'}, ['A', 'B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
})
larger = Template({
    'A': RsrcDef({}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'a': '4alpha'}, ['A', 'B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', 'a')}, []),
    'F': RsrcDef({}, ['D', 'E']),
})

engine.create_stack('foo', usual)
engine.noop(5)
engine.call(verify, usual)

engine.update_stack('foo', smaller)
engine.noop(9)
engine.call(verify, smaller)

engine.update_stack('foo', larger)
engine.noop(11)
engine.call(verify, larger)

engine.delete_stack('foo')
engine.noop(7)
engine.call(verify, Template())
