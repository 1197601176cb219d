# F044b: the operation is complete when one of its messages comes again, and the resource would fail now.
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
engine.update_stack('foo', second)
engine.double(5)
engine.noop(1)
engine.double(5)
engine.settle()
engine.fails('A', times=None)
engine.double(5)
engine.settle()
engine.call(verify, second)
