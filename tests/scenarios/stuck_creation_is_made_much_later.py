# F020, F027: a call makes its object when the search for it is over and its row is gone. Its worker has it tracked.
before = Template({
    'A': RsrcDef({'a': 'one'}),
})
after = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
})

engine.create_stack('foo', before)
engine.settle()
engine.blocks('B', 150, action='CREATE')
engine.update_stack('foo', after)
engine.noop(3)
engine.cancel_and_roll_back('foo')
engine.settle()
engine.works('B')
engine.update_stack('foo', before)
engine.settle()
