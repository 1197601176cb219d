# F022: a worker is slow, but alive. Nobody takes its work, and nothing is made twice.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', stack)
engine.noop(1)
engine.freeze_worker(15)
engine.settle()
engine.call(verify, stack)
engine.call(lambda: test.assertEqual([1, 1, 1], sorted(reality.made.values())))
