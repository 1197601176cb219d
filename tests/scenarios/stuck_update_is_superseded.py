# F097, F108: an update in place is stuck. The next update has it stopped, and does what the first one could not.
def template(value):
    return Template({
        'A': RsrcDef({'a': value}),
        'B': RsrcDef({'b': GetRes('A')}),
    })

engine.create_stack('foo', template('one'))
engine.settle()
engine.blocks('A', action='UPDATE')
engine.update_stack('foo', template('two'))
engine.noop(2)
engine.cancel('foo')
engine.pass_time(15)
engine.works('A')
engine.update_stack('foo', template('three'))
engine.settle()
engine.call(verify, template('three'))
