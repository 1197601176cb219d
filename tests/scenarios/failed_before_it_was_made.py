# F023, F069: a create failed before there was anything; the next update makes it.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.fails('A', action='CREATE')
engine.create_stack('foo', first)
engine.settle()
engine.update_stack('foo', first)
engine.settle()
engine.call(verify, first)
