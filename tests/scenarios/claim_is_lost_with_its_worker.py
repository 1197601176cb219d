"""The database loses that a creation was begun, and its worker dies: under the same token the service makes nothing twice."""

wanted = Template({'A': RsrcDef({'v': 1}, [], kind='Enforced')})
engine.blocks('A', 3, action='CREATE', afterwards=True)
engine.create_stack('s', wanted)
engine.pass_time(1)
engine.database_goes_back(1)
engine.crash_worker()
engine.settle()
