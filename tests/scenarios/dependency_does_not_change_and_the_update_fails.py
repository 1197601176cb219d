# F060: a resource is to be moved from one dependency to another, fails and still uses the old one: on delete it goes
# before.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
    'C': RsrcDef({'c': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
    'C': RsrcDef({'c': GetRes('B')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.fails('C', action='UPDATE')
engine.update_stack('foo', second)
engine.settle()
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
