# Observers, engines and workers die while they look and repair: what has changed is put right once all the same.
wanted = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'c': 'one'}, kind='NamedLater'),
}, drift_policy='repair')

engine.create_stack('foo', wanted)
engine.settle()
for name, harm in (('A', 'GONE'), ('B', 'CHANGED'), ('C', 'ILL')):
    engine.harms(name, harm)
    engine.crash_observer()
    engine.noop(3)
    engine.crash_engine()
    engine.noop(3)
    engine.crash_worker()
engine.settle()
engine.call(verify, wanted)
