# F026, F027: an object is made while the database cannot be told; whoever looks for it later finds it.
stack = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
})

engine.takes('A', 1.0)
engine.create_stack('foo', stack)
engine.noop(1)
engine.database_away(75)
engine.pass_time(30)
engine.works('A')
engine.settle()
engine.call(verify, stack)
engine.call(lambda: test.assertEqual(2, len(reality.all_resources())))
