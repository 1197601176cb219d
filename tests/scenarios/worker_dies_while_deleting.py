# F037, F084: a worker dies in the middle of a delete.
before = Template({
    'A': RsrcDef({'a': 'initial'}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'!a': GetAtt('A', 'a')}, ['B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', '!a')}, []),
})

engine.create_stack('foo', before)
engine.settle()
engine.delete_stack('foo')
engine.noop(2)
engine.crash_worker()
engine.settle()
engine.call(verify, Template())
