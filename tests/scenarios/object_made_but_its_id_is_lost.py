# F027: a worker dies after it has made something and before it has said what. It is found again, or removed.
stack = Template({
    'A': RsrcDef({'!a': 'one'}),
    'B': RsrcDef({'!b': 'one'}),
    'C': RsrcDef({'!c': 'one'}),
    'D': RsrcDef({'!d': 'one'}),
})

engine.create_stack('foo', stack)
engine.noop(1)
engine.crash_worker()
engine.noop(1)
engine.crash_worker()
engine.settle()
engine.call(verify, stack)
