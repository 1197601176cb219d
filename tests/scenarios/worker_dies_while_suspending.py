# Workers die in the middle of a suspension and of the resumption; others bring both to their end.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', wanted)
engine.settle()
engine.suspend_stack('foo')
engine.noop(1)
engine.crash_worker()
engine.settle()
engine.resume_stack('foo')
engine.noop(1)
engine.crash_worker()
engine.settle()
engine.call(verify, wanted)
