# F018, F051: one resource fails before another has begun. The next update makes both.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.fails('A')
engine.create_stack('foo', first)
engine.settle()
engine.works('A')
engine.update_stack('foo', first)
engine.settle()
engine.call(verify, first)
