# The user gives a resource another name and another input, which is a replacement by hand.
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
more = Template({
    'A': RsrcDef({'a': 'updated'}, []),
    'B': RsrcDef({}, []),
    'newC': RsrcDef({'!a': GetAtt('A', 'a')}, ['B']),
    'D': RsrcDef({'c': GetRes('newC')}, []),
    'E': RsrcDef({'ca': GetAtt('newC', '!a')}, []),
    'F': RsrcDef({}, ['D', 'E']),
})

engine.create_stack('foo', before)
engine.noop(5)
engine.call(verify, before)

engine.update_stack('foo', after)
engine.noop(11)
engine.call(verify, after)

engine.update_stack('foo', more)
engine.noop(11)
engine.call(verify, more)

engine.delete_stack('foo')
engine.noop(7)
engine.call(verify, Template())
