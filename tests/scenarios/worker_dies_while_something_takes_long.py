# F023, F038: the worker that looked after a slow resource dies. Another goes on with it.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.takes('B', 20)
engine.create_stack('foo', stack)
engine.noop(4)
engine.crash_worker()
engine.settle()
engine.call(verify, stack)
