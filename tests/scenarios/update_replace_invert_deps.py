# B needs A; then A needs B, and both have to be replaced. F059.
def counts(name, number):
    test.assertEqual(number, len(reality.resources_by_logical_name(name)))



before = Template({
    'A': RsrcDef({'!a': 'initial'}, []),
    'B': RsrcDef({'!b': 'first'}, ['A']),
})
after = Template({
    'A': RsrcDef({'!a': 'updated'}, ['B']),
    'B': RsrcDef({'!b': 'second'}, []),
})
engine.create_stack('foo', before)
engine.noop(2)
engine.call(verify, before)

engine.update_stack('foo', after)
engine.noop(4)
engine.call(counts, 'A', 2)
engine.call(counts, 'B', 1)
engine.noop(2)
engine.call(verify, after)

engine.delete_stack('foo')
engine.noop(3)
engine.call(verify, Template())
