# F107, F113: an update takes too long and is rolled back.
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

engine.time_limit('foo', 1)
engine.rollback_on_failure('foo')
engine.hangs('A', action='UPDATE', times=1)
engine.update_stack('foo', second)
engine.pass_time(80)
engine.works('A')
engine.settle()
