# F041: an update supersedes a resumption half-way; it wakes up what it finds asleep before it changes anything.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'c': 'one'}),
    'D': RsrcDef({'d': 'the same'}),
    'E': RsrcDef({'e': GetRes('D')}),
    'F': RsrcDef({'f': GetRes('E')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'!c': 'two'}),
    'D': RsrcDef({'d': 'the same'}),
    'E': RsrcDef({'e': GetRes('D')}),
    'F': RsrcDef({'f': GetRes('E')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.suspend_stack('foo')
engine.settle()
engine.resume_stack('foo')
engine.noop(1)
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
