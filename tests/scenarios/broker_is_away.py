# F015, F016: the broker goes away with all its messages, while operations are in progress and while they are asked for.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})
second = Template({
    'A': RsrcDef({'!a': 'two'}),
    'C': RsrcDef({'c': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.noop(1)
engine.broker_away(60)
engine.settle()
engine.call(verify, first)
engine.broker_away(120)
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
engine.broker_away(20)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
