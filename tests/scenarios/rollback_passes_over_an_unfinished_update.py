# F073: an update that supersedes an unfinished one fails: the way back leads to what was last up, not to what was
# last tried.
first = Template({
    'A': RsrcDef({'a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
third = Template({
    'A': RsrcDef({'a': 'three'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.rollback_on_failure('foo')
engine.takes('B', 1.5)
engine.fails('A', action='UPDATE', after=1, times=1)
engine.update_stack('foo', second)
engine.noop(1)
engine.update_stack('foo', third)
engine.settle()
