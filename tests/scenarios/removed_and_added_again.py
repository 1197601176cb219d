# F062: a resource is removed by an update that is superseded by one that has it again.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'one'}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.update_stack('foo', second)
engine.noop(2)
engine.update_stack('foo', first)
engine.noop(2)
engine.update_stack('foo', second)
engine.noop(2)
engine.update_stack('foo', first)
engine.settle()
engine.call(verify, first)
