# F080: what is wanted is up and removing the rest fails: that never rolls anything back.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.rollback_on_failure('foo')
engine.fails('B', action='DELETE')
engine.update_stack('foo', second)
engine.settle()
engine.works('B')
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
