"""A creation fails and does not say that the object is there, and the service does not say either while it is repaired,
or deleted: it is asked until it answers."""

wanted = Template({'A': RsrcDef({'v': 1}), 'B': RsrcDef({'a': GetRes('A')})})
changed = Template({'A': RsrcDef({'v': 2}), 'B': RsrcDef({'a': GetRes('A')})})
engine.is_made_silently('A')
engine.create_stack('site', wanted)
engine.settle()
engine.answers('A', 'FIND', 'BUSY', times=3)
engine.update_stack('site', changed)
engine.settle()
engine.call(verify, changed)
engine.delete_stack('site')
engine.settle()
engine.call(verify, Template())
