"""A creation fails and does not say that the object is there: it is found by its token, and used or removed."""

wanted = Template({'A': RsrcDef({'v': 1}), 'B': RsrcDef({'a': GetRes('A')})})
engine.is_made_silently('A')
engine.create_stack('site', wanted)
engine.settle()
engine.update_stack('site', wanted)
engine.settle()
engine.call(verify, wanted)
engine.delete_stack('site')
engine.settle()
engine.call(verify, Template())
