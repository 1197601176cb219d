# F027, F085: a worker dies while it makes something, and the stack is deleted at once: nothing may remain.
stack = Template({
    'A': RsrcDef({'!a': 'one'}),
    'B': RsrcDef({'!b': 'one'}),
    'C': RsrcDef({'c': GetRes('A')}),
})

engine.create_stack('foo', stack)
engine.noop(2)
engine.crash_worker()
engine.delete_stack('foo')
engine.settle()
engine.call(verify, Template())
