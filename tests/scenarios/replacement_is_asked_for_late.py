# F067: only in the middle of an update in place does it turn out that a replacement is needed.
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
engine.call(verify, first)

engine.is_refused('A')
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
