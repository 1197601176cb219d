# F079: the rollback fails as well. The stack can still be updated.
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
engine.fails('A', action='UPDATE', times=2)
engine.update_stack('foo', second)
engine.settle()
engine.works('A')
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
