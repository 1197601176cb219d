# F088: a delete fails though the object is gone; when it is tried again there is nothing to delete.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', stack)
engine.settle()
engine.fails('B', action='DELETE', afterwards=True)
engine.delete_stack('foo')
engine.settle()
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
