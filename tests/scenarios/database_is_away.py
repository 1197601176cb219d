# F026, F133: the database does not answer for a while, shorter and longer than transactions wait and than leases last.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
    'C': RsrcDef({'c': GetRes('B')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'C': RsrcDef({'!c': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.noop(2)
engine.database_away(5)
engine.settle()
engine.call(verify, first)
engine.update_stack('foo', second)
engine.noop(1)
engine.database_away(90)
engine.settle()
engine.call(verify, second)
engine.database_away(40)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
