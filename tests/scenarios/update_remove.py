# A resource is removed from a finished stack.
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

engine.create_stack('foo', usual)
engine.noop(5)
engine.call(verify, usual)

engine.update_stack('foo', smaller)
engine.noop(9)
engine.call(verify, smaller)
