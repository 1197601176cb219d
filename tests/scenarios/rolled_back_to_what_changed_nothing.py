"""Two updates change nothing; what the third has replaced is given up for what was there, which no row tells of.

F012: the rows still name the first template, and count as those of the third.
"""

kept = []


def remember():
    kept[:] = reality.resources_by_logical_name('A')


def same():
    test.assertEqual(kept, list(reality.resources_by_logical_name('A')))


def site(value):
    return Template({
        'A': RsrcDef({'!b': GetAtt('B', 'b')}),
        'B': RsrcDef({'b': value}),
        'C': RsrcDef({'c': GetRes('A')}),
    })


engine.create_stack('foo', site('one'))
engine.settle()
for _ in range(2):
    engine.update_stack('foo', site('one'))
    engine.settle()
engine.call(remember)
engine.fails('C', action='UPDATE', times=1)
engine.update_stack('foo', site('two'))
engine.settle()
engine.go_back('foo')
engine.settle()
engine.call(verify, site('one'))
engine.call(same)
engine.delete_stack('foo')
engine.settle()
