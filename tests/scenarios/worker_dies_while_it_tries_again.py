# F023, F027: a service was busy, then made the object, and the worker died before it could write that down. Whoever goes
# on must not believe that nothing was made, as the one before could.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.is_busy('A', action='CREATE', times=2)
engine.create_stack('foo', stack)
engine.noop(6)
engine.pass_time(6.0)
engine.crash_worker()
engine.settle()
engine.call(verify, stack)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
