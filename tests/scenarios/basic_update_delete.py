# An update adds a resource while the stack is still being created; later all is deleted. F001, F056.
usual = Template({
    'A': RsrcDef({}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'a': '4alpha'}, ['A', 'B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', 'a')}, []),
})
larger = Template({
    'A': RsrcDef({}, []),
    'B': RsrcDef({}, []),
    'C': RsrcDef({'a': '4alpha'}, ['A', 'B']),
    'D': RsrcDef({'c': GetRes('C')}, []),
    'E': RsrcDef({'ca': GetAtt('C', 'a')}, []),
    'F': RsrcDef({}, ['D', 'E']),
})

engine.create_stack('foo', usual)
engine.noop(2)
engine.call(lambda: test.assertEqual(3, len(reality.all_resources())))
engine.update_stack('foo', larger)
engine.noop(11)
engine.call(verify, larger)

engine.delete_stack('foo')
engine.noop(7)
engine.call(verify, Template())
