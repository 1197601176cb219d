# F041, F052: a check that takes long is superseded by an update, and then asked for again.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.takes('A', 40)
engine.check_stack('foo')
engine.noop(2)
engine.update_stack('foo', second)
engine.works('A')
engine.check_stack('foo')
engine.settle()
engine.call(verify, second)
