"""A creation promises that nothing was made, wrongly; whoever asks is told of it, though the service has become slow to tell."""

engine.is_made_silently('A')
engine.create_stack('site', Template({'A': RsrcDef({'v': 1})}))
engine.settle()
engine.answers('A', 'FIND', 'LIES', seconds=20, times=None)
engine.delete_stack('site')
engine.settle()
engine.call(verify, Template())
