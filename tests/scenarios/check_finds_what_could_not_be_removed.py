"""What could not be removed is still there: a check says so, and the next update removes it."""

both = Template({'A': RsrcDef({'v': 0}), 'B': RsrcDef({'v': 0})})
one = Template({'A': RsrcDef({'v': 0})})

engine.create_stack('site', both)
engine.settle()
engine.fails('B', action='DELETE', times=None)
engine.update_stack('site', one)
engine.settle()
engine.says('site', 'UPDATE_FAILED: ')
engine.check_stack('site')
engine.settle()
engine.says('site', 'CHECK_FAILED: Resource CHECK failed: resources.B: State DELETE_FAILED invalid for check')
engine.works('B')
engine.update_stack('site', one)
engine.settle()
engine.call(verify, one)
