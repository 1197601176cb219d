# F179: a check looks at everything, tells what is missing and changes nothing; the next update makes it anew.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'c': 'one'}),
})

engine.create_stack('foo', wanted)
engine.settle()
engine.vanishes('B')
engine.check_stack('foo')
engine.settle()
engine.update_stack('foo', wanted)
engine.settle()
engine.call(verify, wanted)
