# F020, F021, F086: a call returns when its row was taken from it. What it had made is tracked and goes with the rest.
before = Template({
    'A': RsrcDef({'a': 'one'}),
})
after = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}),
})

engine.create_stack('foo', before)
engine.settle()
engine.blocks('B', 40, action='CREATE', afterwards=True)
engine.update_stack('foo', after)
engine.noop(3)
engine.cancel_and_roll_back('foo')
engine.settle()
engine.works('B')
engine.update_stack('foo', before)
engine.settle()
engine.call(verify, before)
