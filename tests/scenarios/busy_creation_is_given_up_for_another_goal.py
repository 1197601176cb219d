# F068: a service is busy and nothing was made. While that waits in its row to be repeated, something else is wanted.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.is_busy('A', action='CREATE', times=2)
engine.create_stack('foo', first)
engine.noop(4)
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
