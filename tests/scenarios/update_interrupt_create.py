# What had not been made when an update came is made from the new definition, not from the old one. F057.
chain = Template({
    'A': RsrcDef({}, []),
    'B': RsrcDef({}, ['A']),
    'C': RsrcDef({'value': 'old'}, ['B']),
    'D': RsrcDef({'value': 'old'}, ['C']),
})
newer = Template({
    'A': RsrcDef({}, []),
    'B': RsrcDef({}, ['A']),
    'C': RsrcDef({'value': 'new'}, ['B']),
    'D': RsrcDef({'value': 'new'}, ['C']),
})
engine.create_stack('foo', chain)
engine.noop(1)
engine.call(lambda: test.assertEqual(2, len(reality.all_resources())))
engine.update_stack('foo', newer)
engine.noop(8)
engine.call(verify, newer)
