# F042, F047: several updates are accepted one right after another. The last one counts, the others leave nothing.
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

engine.update_stack('foo', second)
engine.update_stack('foo', third)
engine.update_stack('foo', second)
engine.update_stack('foo', third)
engine.settle()
engine.call(verify, third)
