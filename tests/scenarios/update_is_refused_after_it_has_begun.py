"""A type finds out in the middle of an update in place that only a new object will do: the old one has been changed
already, and is of no use to a rollback as it is. A sibling fails, so that there is one."""

first = Template({'A': RsrcDef({'v': 1}), 'B': RsrcDef({'v': 1}, ['A'])})
second = Template({'A': RsrcDef({'v': 2}), 'B': RsrcDef({'v': 2}, ['A'])})
engine.create_stack('site', first)
engine.settle()
engine.rollback_on_failure('site')
engine.is_refused('A', begun=True)
engine.fails('B', action='UPDATE')
engine.update_stack('site', second)
engine.settle()
engine.delete_stack('site')
engine.settle()
