# F076: one resource fails while another is still being made; the rollback takes care of both.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.rollback_on_failure('foo')
engine.takes('B', 20)
engine.fails('A', action='CREATE', times=None)
engine.create_stack('foo', first)
engine.settle()
engine.call(verify, Template())
