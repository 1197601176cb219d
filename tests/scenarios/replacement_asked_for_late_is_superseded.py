# F067, F007: as before, and a newer update comes just then.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
third = Template({
    'A': RsrcDef({'a': 'three'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.is_refused('A', takes=1.5)
engine.update_stack('foo', second)
engine.noop(1)
engine.update_stack('foo', third)
engine.settle()
engine.call(verify, third)
