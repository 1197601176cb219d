"""Somebody else removes an object while an update of it waits in its row: the update fails, and the next one makes the
object again."""

first = Template({'A': RsrcDef({'v': 1})})
second = Template({'A': RsrcDef({'v': 2})})
engine.create_stack('site', first)
engine.settle()
engine.takes('A', 100)
engine.update_stack('site', second)
engine.noop(2)
engine.pass_time(20)
engine.vanishes('A')
engine.settle()
engine.works('A')
engine.check_stack('site')
engine.settle()
