# What a failed suspension has put to rest is woken up again.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', wanted)
engine.settle()
engine.fails('A', action='SUSPEND')
engine.suspend_stack('foo')
engine.settle()
engine.resume_stack('foo')
engine.settle()
engine.call(verify, wanted)
