# F088: a delete is asked for again while it runs, and again when it is done.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', stack)
engine.settle()
engine.delete_stack('foo')
engine.noop(1)
engine.delete_stack('foo')
engine.noop(2)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
