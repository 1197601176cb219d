# F109: the clock of the database is set, ahead by more than a lease and back again. No time limit passes by that.
def template(value):
    return Template({
        'A': RsrcDef({'a': value}),
        'B': RsrcDef({'b': GetAtt('A', 'a')}),
        'C': RsrcDef({'c': GetRes('B')}),
    })

engine.takes('B', 8)
engine.create_stack('foo', template('one'))
engine.noop(2)
engine.clock_jumps(90)
engine.settle()
engine.call(verify, template('one'))
engine.update_stack('foo', template('two'))
engine.noop(2)
engine.clock_jumps(-60)
engine.settle()
engine.call(verify, template('two'))
