# F107, F114: a call never returns and nobody cancels it. The time limit of the stack passes, and its worker goes on.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.time_limit('foo', 2)
engine.rollback_on_failure('foo')
engine.blocks('B', action='CREATE')
engine.create_stack('foo', stack)
engine.settle()
engine.works('B')
engine.time_limit('foo', 60)
engine.update_stack('foo', stack)
engine.settle()
engine.call(verify, stack)
