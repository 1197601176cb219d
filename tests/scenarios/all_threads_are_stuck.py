# F114: the calls of one stack hold every thread of every worker. Another stack gets its turn when they are given up.
greedy = Template({f'A{number}': RsrcDef({'a': 'one'}) for number in range(26)})
modest = Template({
    'X': RsrcDef({'x': 'one'}),
    'Y': RsrcDef({'y': GetRes('X')}),
})

for name in greedy.resources:
    engine.blocks(name, action='CREATE', times=None)
engine.create_stack('greedy', greedy)
engine.noop(26)
engine.create_stack('modest', modest)
engine.pass_time(20)
engine.cancel('greedy')
engine.settle()
for name in greedy.resources:
    engine.works(name)
engine.delete_stack('greedy')
engine.settle()
engine.call(verify, modest)
