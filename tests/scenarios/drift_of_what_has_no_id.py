# What is made of something that is repaired has no id, and nobody can ask for it: it is not made a second time.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetAtt('A', 'a')}, kind='Traceless'),
    'C': RsrcDef({'c': GetAtt('A', 'a')}, kind='Nameless'),
}, drift_policy='repair')

engine.create_stack('foo', wanted)
engine.settle()
engine.harms('A', 'CHANGED')
engine.settle()
engine.call(verify, wanted)
