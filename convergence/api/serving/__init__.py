"""Takes HTTP requests from a network and hands them to a WSGI application, whole.

An event loop reads requests and sends answers; a thread of the application gets a request only when all of it is there,
and gives its answer away at once. So a client that is slow, or wants to be, holds a socket and no thread. The parts:

* `limits`: what a client may take in time, connections and memory, and `ledger`, which counts it;
* `connection`: the protocol of one socket, on h11;
* `lanes`: which requests wait for which threads, and in which order;
* `gateway`: a request as WSGI wants it, and the answer as the connection wants it;
* `proxies`: who asks, where a proxy asks for somebody else.
"""
