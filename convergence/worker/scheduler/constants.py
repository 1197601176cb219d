"""Every time and size by which a worker decides who runs the next ready node.

Times are seconds on the clock of the process. `tests/engine/test_operations_costs.py` counts what the mechanisms below
save; `make bench` measures it ("costs" and "nested").
"""

INLINE_SLICE_S = 1.0
"""Time for which a thread runs node after node while nodes of other operations wait for a thread.

A thread that stops in between pays one message and one commit more for its next node. A person does not notice that an
operation starts a second later, and threads come free all the time where types answer quickly.
"""

BUFFER_S = 0.03
"""Time for which ready nodes are kept back while all threads are busy here, before other workers get them in a message.

Threads of this worker run most of these nodes by then, as the next ones of their operations.
"""

HORIZON_S = 1.0
"""Time span for which this worker keeps nodes of nested and parent stacks: as many as its threads run meanwhile.

Other workers would hardly start them sooner, and nodes that stay here cost no message.
"""

THROUGHPUT_NODES = 64
"""The last nodes by which the throughput is known: eight for each of the usual eight threads."""

BACKLOG_PER_THREAD = 2
"""Waiting nodes per thread up to which this worker takes a single node without a message at any throughput."""

NESTED_MESSAGE_NODES = 16
"""Maximum number of nodes of a nested stack in one message: one thread runs so few of them inline, one after the other.
"""

NESTED_BATCH = 5
"""Maximum number of nested stacks that one thread starts in one call of an engine.

An engine that plans for longer than half a second answers without the rest; five plans of small stacks take less.
"""

NESTED_BACKLOG = 50
"""Waiting nodes of nested stacks up to which threads start further nested stacks in batches, at any throughput.

Beyond it the nodes inside come first. Else a worker would start all nested stacks of a stack before it ran any of their
nodes.
"""

JAMMED_S = 2.0
"""Time without a free thread after which an operation without any thread gets one beyond the configured number, and
after which this worker forwards waiting nodes to workers that have room."""

MAX_REDELIVERIES = 3
"""Maximum number of times that workers without a free thread forward one node. After that the node waits here, or the
sweeper requeues it.
"""
