# F017: messages are delivered again, some of them much later. Nothing is done twice.
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
engine.double(10)
engine.noop(2)
engine.double(10)
engine.settle()
engine.call(verify, before)
engine.update_stack('foo', after)
engine.double(10)
engine.noop(3)
engine.double(10)
engine.settle()
engine.call(verify, after)
