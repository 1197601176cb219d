# F180: somebody says at any moment that a resource is broken; the next update replaces it, whatever it says of it.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
changed = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', wanted)
engine.settle()
engine.update_stack('foo', changed)
engine.noop(1)
engine.says_broken('foo', 'A')
engine.settle()
engine.says_broken('foo', 'A')
engine.update_stack('foo', changed)
engine.settle()
engine.call(verify, changed)
