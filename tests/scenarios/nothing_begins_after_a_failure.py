# F051: resources that had not begun when another failed are not begun.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'c': GetRes('B')}),
    'D': RsrcDef({'d': 'one'}),
    'E': RsrcDef({'e': GetRes('D')}),
})

engine.fails('B', times=None)
engine.create_stack('foo', first)
engine.settle()
engine.call(lambda: test.assertEqual({}, reality.resources_by_logical_name('C')))
