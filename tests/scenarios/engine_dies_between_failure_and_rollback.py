# F045: a resource fails, and the engine that is to begin the rollback dies.
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

engine.rollback_on_failure('foo')
engine.fails('B', action='UPDATE', times=None)
engine.fails('A', action='UPDATE')
engine.update_stack('foo', second)
engine.noop(1)
engine.crash_engine()
engine.noop(1)
engine.crash_engine()
engine.settle()
