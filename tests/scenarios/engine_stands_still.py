# F022, F045: an engine stands still in the middle of whatever it does. The other one sweeps, and its late plan is refused.
def template(value):
    return Template({
        'A': RsrcDef({'a': value}),
        'B': RsrcDef({'!b': GetAtt('A', 'a')}),
    })

engine.create_stack('foo', template('one'))
engine.freeze_engine(60)
engine.update_stack('foo', template('two'))
engine.freeze_engine(20)
engine.settle()
engine.call(verify, template('two'))
engine.rollback_on_failure('foo')
engine.fails('B', action='CREATE')
engine.update_stack('foo', template('three'))
engine.noop(2)
engine.freeze_engine(60)
engine.settle()
