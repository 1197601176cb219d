# An object could not be removed and has the address: what is wanted is made when that is gone, not refused for ever.
wanted = Template({
    'A': RsrcDef({'a': 'one'}, kind='Addressed'),
    'B': RsrcDef({'b': 'one'}, kind='EnforcedAddressed'),
    'C': RsrcDef({'c': GetRes('A'), 'd': GetRes('B')}),
})

engine.create_stack('foo', wanted)
engine.settle()
engine.fails('A', action='DELETE', times=None)
engine.fails('B', action='DELETE', times=None)
engine.delete_stack('foo')
engine.settle()
engine.works('A')
engine.works('B')
engine.update_stack('foo', wanted)
engine.settle()
engine.call(verify, wanted)
