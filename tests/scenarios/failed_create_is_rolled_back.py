# F048, F074: a create fails and is rolled back: nothing remains.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.rollback_on_failure('foo')
engine.fails('C', action='CREATE', times=None)
engine.create_stack('foo', stack)
engine.settle()
engine.call(verify, Template())
engine.works('C')
engine.update_stack('foo', stack)
engine.settle()
engine.call(verify, stack)
