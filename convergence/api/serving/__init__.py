"""Takes HTTP requests from a network and hands them to a WSGI application, whole.

An event loop reads requests and sends answers. A thread of the application gets a request only after all of it has
arrived, and passes its answer to the loop at once. So a slow client uses a socket and no thread. The parts:

* `limits`: time, connections and memory of a client, and `ledger`, which counts them;
* `connection`: the protocol of one socket, on h11;
* `lanes`: queues of requests for threads;
* `gateway`: converts a request to WSGI, and an answer back;
* `proxies`: the real client behind a proxy.
"""
