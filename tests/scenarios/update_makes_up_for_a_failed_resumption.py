# An update could not resume B. The next one does not take it for what is wanted by the look of it: it resumes it first.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', wanted)
engine.settle()
engine.fails('A', action='SUSPEND', times=None)
engine.suspend_stack('foo')
engine.settle()
engine.fails('B', action='RESUME')
engine.update_stack('foo', wanted)
engine.settle()
engine.update_stack('foo', wanted)
engine.settle()
engine.call(verify, wanted)
