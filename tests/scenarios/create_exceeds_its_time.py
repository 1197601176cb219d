# F107, F114: a resource hangs and the time limit of the stack passes.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.time_limit('foo', 1)
engine.hangs('B', times=None)
engine.create_stack('foo', stack)
engine.settle()
engine.works('B')
engine.time_limit('foo', 60)
engine.update_stack('foo', stack)
engine.settle()
engine.call(verify, stack)
