"""What runs comes to its end after a cancel, and nothing else begins; the next update goes on from there."""

wanted = Template({
    'A': RsrcDef({'v': 1}),
    'B': RsrcDef({'v': 1}, kind='Blind'),
    'C': RsrcDef({'a': GetRes('A'), 'b': GetRes('B')}),
    'D': RsrcDef({'c': GetRes('C')}),
})

engine.takes('A', 20)
engine.takes('B', 30)
engine.create_stack('s', wanted)
engine.noop(3)
engine.cancel_patiently('s')
engine.settle()
engine.says('s', 'CREATE_FAILED: Stack CREATE cancelled', 'CREATE_COMPLETE')
engine.update_stack('s', wanted)
engine.settle()
engine.call(verify, wanted)

# What does not end in time is stopped.
changed = Template({'A': RsrcDef({'v': 2}), 'B': RsrcDef({'v': 2}, kind='Cancellable'), 'E': RsrcDef({'a': GetRes('A')})})
engine.hangs('B')
engine.update_stack('s', changed)
engine.noop(3)
engine.cancel_patiently('s')
engine.settle()
engine.works('B')

# An update does not wait for the end of a cancel, and a delete neither.
engine.update_stack('s', wanted)
engine.noop(2)
engine.cancel_patiently('s')
engine.noop(1)
engine.update_stack('s', changed)
engine.settle()
engine.call(verify, changed)
engine.update_stack('s', wanted)
engine.noop(2)
engine.cancel_patiently('s')
engine.delete_stack('s')
engine.settle()
