# F028: a resource is dropped from the template at the moment in which its creation begins.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
    'C': RsrcDef({'c': 'one'}),
})
second = Template({
    'A': RsrcDef({'a': 'one'}),
})

engine.create_stack('foo', first)
engine.update_stack('foo', second)
engine.noop(3)
engine.update_stack('foo', first)
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
