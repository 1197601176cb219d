"""A stack uses an object that others have made, and retains one of its own: neither goes with the stack."""

engine.exists('theirs', {'v': 5})
first = Template(
    {
        'A': RsrcDef({}, external_id='theirs'),
        'B': RsrcDef({'a': GetRes('A')}, deletion_policy='Retain'),
        'C': RsrcDef({'b': GetRes('B')}),
    }
)
second = Template({'A': RsrcDef({}, external_id='theirs'), 'C': RsrcDef({'a': GetRes('A')})})
engine.create_stack('site', first)
engine.settle()
engine.call(verify, first)
engine.update_stack('site', second)
engine.settle()
engine.call(verify, second)
engine.delete_stack('site')
engine.settle()
engine.call(test.assertIn, 'theirs', reality.objects)
engine.call(lambda: test.assertEqual(1, len(reality.resources_by_logical_name('B'))))
