# F104, F106: a rollback hangs and is cancelled; the next update brings the stack to what is wanted then.
first = Template({
    'A': RsrcDef({'a': 'one'}),
})
second = Template({
    'A': RsrcDef({'a': 'one'}),
    'C': RsrcDef({'c': GetRes('A')}),
    'D': RsrcDef({'d': GetRes('C')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.hangs('C', action='DELETE', times=None)
engine.hangs('D', action='CREATE', times=None)
engine.update_stack('foo', second)
engine.pass_time(20)
engine.cancel_and_roll_back('foo')
engine.pass_time(5)
engine.cancel('foo')
engine.settle()
engine.says('foo', 'ROLLBACK_FAILED: Stack ROLLBACK cancelled', 'ROLLBACK_COMPLETE')
engine.works('C')
engine.works('D')
engine.update_stack('foo', first)
engine.settle()
engine.call(verify, first)
