# Nothing joins B with the rest, and E stands alone: several nodes begin, and several end, the update.
parts = Template({
    'A': RsrcDef({}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'a': '4alpha'}, ['A']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({}, []),
})
engine.create_stack('foo', parts)
engine.noop(5)
engine.call(verify, parts)
