"""A resource waits at the same hook in two updates, and is not begun in between: the word that it may go on gets lost
in the first, and the second has to be told anew."""

plain = Template({'A': RsrcDef({'v': 0})})
hooked = Template({'A': RsrcDef({'v': 0}), 'B': RsrcDef({'v': 1})}, hooks={'B': 'pre-create'})
again = Template({'A': RsrcDef({'v': 0}), 'B': RsrcDef({'v': 2})}, hooks={'B': 'pre-create'})

engine.create_stack('site', plain)
engine.settle()
engine.update_stack('site', hooked)
engine.noop(2)
engine.broker_away(3)
engine.pass_time(2)
engine.update_stack('site', again)
engine.settle()
engine.call(verify, again)
