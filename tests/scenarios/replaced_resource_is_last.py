# F011: nothing needs the resource that is replaced; the stack still has to learn that it is done.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'!b': 'one'}),
})
second = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'!b': 'two'}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.update_stack('foo', second)
engine.noop(4)
engine.call(verify, second)
