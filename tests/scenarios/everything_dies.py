# F015, F024: all engines and workers die. Those that come after them finish what was begun.
before = Template({
    'A': RsrcDef({'a': 'initial'}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'!a': GetAtt('A', 'a')}, ['B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', '!a')}, []),
})

engine.create_stack('foo', before)
engine.noop(3)
engine.crash_worker()
engine.crash_worker()
engine.crash_worker()
engine.crash_engine()
engine.crash_engine()
engine.settle()
engine.call(verify, before)
