# F070: removing what is not wanted any more takes long; what is wanted is up before.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.takes('B', 40)
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
