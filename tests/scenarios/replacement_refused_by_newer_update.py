# F007, F030, F032: a newer update comes between the decision to replace a resource and the replacement.
first = Template({
    'A': RsrcDef({'!a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'!a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
third = Template({
    'A': RsrcDef({'!a': 'three'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.update_stack('foo', second)
engine.noop(1)
engine.update_stack('foo', third)
engine.noop(1)
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
