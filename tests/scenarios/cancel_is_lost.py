# F097: the message of a cancel gets lost.
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

engine.takes('A', 20)
engine.update_stack('foo', second)
engine.noop(1)
engine.cancel('foo')
engine.drop(5)
engine.settle()
engine.works('A')
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
