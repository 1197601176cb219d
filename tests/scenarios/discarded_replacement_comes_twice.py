# F029: the message of a replacement that was discarded meanwhile comes again.
first = Template({
    'A': RsrcDef({'!a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'!a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.update_stack('foo', second)
engine.noop(2)
engine.double(5)
engine.rollback_stack('foo')
engine.double(5)
engine.settle()
engine.call(verify, first)
