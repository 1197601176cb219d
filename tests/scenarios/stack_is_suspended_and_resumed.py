# Suspending goes from what uses others to what is used, resuming the other way; nothing is made anew.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', wanted)
engine.settle()
engine.suspend_stack('foo')
engine.settle()
engine.resume_stack('foo')
engine.settle()
engine.call(verify, wanted)
