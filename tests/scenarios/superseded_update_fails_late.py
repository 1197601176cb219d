# F002, F046: the resource that a newer update waits for fails in the older one. That is not the failure of the newer.
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

engine.fails('A', action='UPDATE', afterwards=True, takes=1.5)
engine.update_stack('foo', second)
engine.noop(1)
engine.update_stack('foo', first)
engine.noop(8)
engine.settle()
