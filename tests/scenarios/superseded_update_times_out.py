# F003, F108: the resource that a newer update waits for hangs, and the time limit of the older one passes.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.time_limit('foo', 1)
engine.hangs('A', times=None)
engine.create_stack('foo', first)
engine.noop(2)
engine.time_limit('foo', 60)
engine.update_stack('foo', second)
engine.noop(2)
engine.pass_time(100)
engine.works('A')
engine.settle()
engine.call(verify, second)
