# F015, F016: every message of an operation gets lost. Nobody waits for them for ever.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', stack)
engine.drop(10)
engine.noop(1)
engine.drop(10)
engine.noop(1)
engine.drop(10)
engine.settle()
engine.call(verify, stack)
