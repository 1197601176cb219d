# F034, F047: an engine dies while it accepts an operation. The user asks again; nothing is there twice.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', stack)
engine.crash_engine()
engine.noop(2)
engine.update_stack('foo', stack)
engine.crash_engine()
engine.settle()
engine.call(verify, stack)
