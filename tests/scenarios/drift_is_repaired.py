# Somebody changes one object, spoils another and removes a third: engines put them right, with what refers to them.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'c': 'one'}),
    'D': RsrcDef({'d': GetRes('C')}),
    'E': RsrcDef({'e': 'one'}),
}, drift_policy='repair')

engine.create_stack('foo', wanted)
engine.settle()
engine.harms('A', 'CHANGED')
engine.harms('C', 'GONE')
engine.harms('E', 'ILL')
engine.settle()
engine.call(verify, wanted)
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
