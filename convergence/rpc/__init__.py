"""Messages between processes: transport, wire messages, clients, servers. The only package that uses oslo.messaging."""
