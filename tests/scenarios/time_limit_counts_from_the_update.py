# F108: an update with time enough supersedes one whose time is nearly over.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.time_limit('foo', 1)
engine.takes('A', 50)
engine.create_stack('foo', first)
engine.pass_time(30)
engine.update_stack('foo', second)
engine.settle()
