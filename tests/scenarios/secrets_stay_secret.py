# I11: a secret is among the properties of resources that fail in every way.
first = Template({
    'A': RsrcDef({'a': 'canary-1'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
})
second = Template({
    'A': RsrcDef({'a': 'canary-2'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
})

engine.fails('A', action='CREATE')
engine.create_stack('foo', first)
engine.settle()
engine.raises('B', action='CREATE')
engine.update_stack('foo', first)
engine.settle()
engine.update_stack('foo', first)
engine.settle()
engine.is_refused('A')
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
