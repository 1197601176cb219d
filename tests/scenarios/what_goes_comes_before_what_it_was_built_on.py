"""Rows that nobody wants any more go before those that they were built on, although only an update finds out that these
are replaced: what is removed and takes its time, what is two levels up, what has stopped using them and is replaced too.
"""

before = Template({
    'A': RsrcDef({'!a': 1}),
    'B': RsrcDef({'!b': 1, 'a': GetRes('A')}),
    'C': RsrcDef({'c': 1}),
    'L': RsrcDef({'!l': 1, 'm': GetRes('M')}),
    'M': RsrcDef({'!m': 1}),
    'X': RsrcDef({'b': GetRes('B'), 'c': GetRes('C')}),
})
wanted = Template({
    'A': RsrcDef({'!a': 2}),
    'B': RsrcDef({'!b': 2, 'a': GetRes('A')}),
    'C': RsrcDef({'c': 2}),
    'L': RsrcDef({'!l': 2}),
    'M': RsrcDef({'!m': 2}),
})
engine.create_stack('site', before)
engine.settle()
engine.call(verify, before)
engine.blocks('X', 8)
engine.update_stack('site', wanted)
engine.settle()
engine.call(verify, wanted)
engine.delete_stack('site')
engine.settle()
