# F044, F104: a rollback is asked for again, because the engine died before it answered.
first = Template({
    'A': RsrcDef({'!a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'!a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.update_stack('foo', second)
engine.noop(2)
engine.rollback_stack('foo')
engine.crash_engine()
engine.settle()
