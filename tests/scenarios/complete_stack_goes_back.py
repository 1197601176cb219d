"""A user takes an update back that is complete: to what was complete before it, and then forward again."""

first = Template({
    'A': RsrcDef({'v': 1}),
    'B': RsrcDef({'v': 1, 'a': GetRes('A')}, nested=Template({'X': RsrcDef({'v': 1})})),
    'C': RsrcDef({'r!': 1}),
})
second = Template({
    'A': RsrcDef({'v': 2}),
    'B': RsrcDef({'v': 1, 'a': GetRes('A')}, nested=Template({'X': RsrcDef({'v': 2}), 'Y': RsrcDef({'x': GetRes('X')})})),
    'C': RsrcDef({'r!': 2}),
    'D': RsrcDef({'c': GetRes('C')}),
})

engine.create_stack('s', first)
engine.settle()
engine.update_stack('s', second)
engine.settle()
engine.go_back('s')
engine.settle()
engine.go_back('s')
engine.noop(5)
engine.crash_worker()
engine.settle()
