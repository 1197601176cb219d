# F001: a resource that is asked now and then how far it is, is given up for a while just when a newer update waits
# for it.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.takes('A', 40, every=1.5)
engine.create_stack('foo', first)
engine.noop(1)
engine.update_stack('foo', second)
engine.noop(2)
engine.works('A')
engine.settle()
engine.call(verify, second)
