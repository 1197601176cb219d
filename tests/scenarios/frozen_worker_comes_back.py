# F020, F021, F022: a worker stands still for longer than its lease, others take its work, and it comes back.
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

engine.update_stack('foo', second)
engine.noop(1)
engine.freeze_worker(100)
engine.settle()
engine.update_stack('foo', first)
engine.settle()
engine.call(verify, first)
