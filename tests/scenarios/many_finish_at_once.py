# F043: many resources finish at the same time, and one waits for all of them.
parts = {f'P{number}': RsrcDef({'value': number}) for number in range(6)}
joined = Template({**parts, 'Z': RsrcDef({'first': GetRes('P0')}, sorted(parts))})
engine.create_stack('foo', joined)
engine.noop(7)
engine.call(verify, joined)
engine.delete_stack('foo')
engine.noop(7)
engine.call(verify, Template())
