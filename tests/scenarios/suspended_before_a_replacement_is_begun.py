"""An update is cancelled when a resource is to be replaced and the new one was not begun: the old one is in service, and
what it uses must not be suspended under it."""

before = Template({'A': RsrcDef({'v': 0}), 'B': RsrcDef({'r!': 0, 'a': GetRes('A')})})
after = Template({'A': RsrcDef({'v': 1}), 'B': RsrcDef({'r!': 1, 'a': GetRes('A')})})

engine.create_stack('site', before)
engine.settle()
engine.update_stack('site', after)
engine.noop(2)
engine.cancel('site')
engine.suspend_stack('site')
engine.settle()
