# F067, F048: an update in place had begun when it was refused, and then another resource fails: the rollback finds an
# object that was changed already, and that refers to what the update has brought.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'R': RsrcDef({'r': GetRes('A')}),
    'E': RsrcDef({'e': GetRes('R')}),
})
second = Template({
    'A': RsrcDef({'a': 'one'}),
    'N': RsrcDef({'n': 'new'}),
    'R': RsrcDef({'r': GetRes('N')}),
    'E': RsrcDef({'e': GetRes('R')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.rollback_on_failure('foo')
engine.is_refused('R', takes=1.5)
engine.fails('E', action='UPDATE', times=1)
engine.update_stack('foo', second)
engine.settle()
