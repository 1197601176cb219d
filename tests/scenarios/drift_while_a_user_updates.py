# Somebody changes objects just when their user gives the stack another goal: that goal is what comes of it, sooner or later.
def template(value):
    return Template({
        'A': RsrcDef({'a': value}),
        'B': RsrcDef({'b': GetRes('A'), 'c': value}),
        'C': RsrcDef({'c': 'one'}),
    }, drift_policy='repair')

engine.create_stack('foo', template('one'))
engine.settle()
engine.harms('C', 'CHANGED')
engine.noop(4)
engine.update_stack('foo', template('two'))
engine.noop(4)
engine.harms('C', 'GONE')
engine.noop(4)
engine.harms('A', 'CHANGED')
engine.update_stack('foo', template('three'))
engine.settle()
engine.update_stack('foo', template('three'))
engine.settle()
engine.call(verify, template('three'))
