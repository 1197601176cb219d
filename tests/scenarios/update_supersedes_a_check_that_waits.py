# An update supersedes a check that only waits to look once more.
wanted = Template({'A': RsrcDef({'a': 'one'}, patience={'retry': {'attempts': 9}})})

engine.create_stack('foo', wanted)
engine.settle()
engine.is_busy('A', action='CHECK', times=5)
engine.check_stack('foo')
engine.noop(2)
engine.update_stack('foo', wanted)
engine.settle()
engine.call(verify, wanted)
