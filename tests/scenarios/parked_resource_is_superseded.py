# F001: nobody holds a resource that takes long, it waits in its row; a newer update goes on with it.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.takes('A', 40)
engine.create_stack('foo', first)
engine.noop(2)
engine.update_stack('foo', second)
engine.noop(2)
engine.works('A')
engine.settle()
engine.call(verify, second)
