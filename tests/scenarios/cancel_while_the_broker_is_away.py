# F097, F106: nobody can be told of a cancel. The rows say so, and each worker reads them.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
})

engine.hangs('A', action='CREATE', times=None)
engine.create_stack('foo', stack)
engine.noop(1)
engine.broker_away(60)
engine.cancel('foo')
engine.settle()
engine.works('A')
engine.update_stack('foo', stack)
engine.settle()
engine.call(verify, stack)
