# F023, F024: a worker dies in the middle of a create. Another goes on without anybody asking.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', stack)
engine.noop(2)
engine.crash_worker()
engine.settle()
engine.call(verify, stack)
