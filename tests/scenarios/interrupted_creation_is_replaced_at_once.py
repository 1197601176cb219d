"""A worker dies in a creation that nobody can ask for: the same operation makes it again, and removes what is left.

What was made for the first attempt goes before that on which it was built.
"""

engine.blocks('B', 8, afterwards=True)
before = Template({
    'A': RsrcDef({'v': 1}),
    'B': RsrcDef({'a': GetRes('A')}, kind='Blind'),
})
wanted = Template({
    'A': RsrcDef({'r!': 1}),
    'B': RsrcDef({'a': GetRes('A')}, kind='Blind'),
})
engine.create_stack('site', before)
engine.noop(6)
engine.crash_worker()
engine.noop(1)
engine.works('B')
engine.settle()
engine.call(verify, before)
engine.update_stack('site', wanted)
engine.settle()
engine.call(verify, wanted)
engine.delete_stack('site')
engine.settle()
