# F004: an update comes while the workers are still being told to stop.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.takes('A', 1.5)
engine.create_stack('foo', first)
engine.noop(1)
engine.cancel('foo')
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
