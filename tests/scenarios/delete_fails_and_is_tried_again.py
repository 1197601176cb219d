# F088, F096: a resource cannot be deleted at first; the delete is asked for again.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', stack)
engine.settle()
engine.fails('B', action='DELETE')
engine.delete_stack('foo')
engine.settle()
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
