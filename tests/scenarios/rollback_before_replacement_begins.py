# F012: after a replacement was taken back before it had begun, the next update works.
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
engine.rollback_stack('foo')
engine.noop(8)
engine.call(verify, first)
engine.update_stack('foo', third)
engine.settle()
engine.call(verify, third)
