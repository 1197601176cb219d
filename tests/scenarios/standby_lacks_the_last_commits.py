"""A standby takes over that lacks the last commits: what workers still know is in the rows again, what is made twice goes."""

before = Template({
    'A': RsrcDef({'v': 1}, []),
    'B': RsrcDef({'v': 1, 'a': GetRes('A')}, []),
    'C': RsrcDef({'v': 1}, [], kind='Enforced'),
    'D': RsrcDef({'v': 1}, [], kind='Blind'),
})
after = Template({
    'A': RsrcDef({'v': 2}, []),
    'B': RsrcDef({'v': 1, 'r!': 1, 'a': GetRes('A')}, []),
    'D': RsrcDef({'v': 2}, [], kind='Blind'),
})
engine.create_stack('s', before)
engine.settle()
engine.update_stack('s', after)
engine.noop(6)
engine.database_goes_back(5)
engine.settle()
engine.update_stack('s', before)
engine.settle()
engine.database_goes_back(20)
engine.settle()
