# F071: removing a resource hangs and it is wanted again: a new one is made, the update does not wait.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': 'one'}),
})
second = Template({
    'A': RsrcDef({'a': 'one'}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.time_limit('foo', 1)
engine.hangs('B', action='DELETE', times=None)
engine.update_stack('foo', second)
engine.noop(3)
engine.update_stack('foo', first)
engine.settle()
