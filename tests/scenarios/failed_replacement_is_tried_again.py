# F014, F058: a replacement fails and the same template is sent again: success only if it is really so.
first = Template({
    'A': RsrcDef({'!a': 'one'}),
    'B': RsrcDef({'b': GetRes('A')}),
})
second = Template({
    'A': RsrcDef({'!a': 'two'}),
    'B': RsrcDef({'b': GetRes('A')}),
})

engine.create_stack('foo', first)
engine.settle()
engine.call(verify, first)

engine.fails('A', action='CREATE')
engine.update_stack('foo', second)
engine.settle()
engine.works('A')
engine.update_stack('foo', second)
engine.settle()
engine.call(verify, second)
