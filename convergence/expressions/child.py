"""The process that evaluates YAQL. It is started as a script by `convergence.expressions.process`.

Its standard input is a socket. Each line is a request: seconds of processor time and JSON. Each answer is a line of
JSON. An expression is untrusted code, and the limits of YAQL do not bound its loops. Therefore the kernel limits the
processor time and the memory of this process.
"""

from __future__ import annotations

import json
import random
import resource
import signal
import socket
import sys
import time
from typing import Any


def serve(connection: socket.socket, limits: dict[str, Any]) -> None:
    """Answer requests until the connection ends."""
    import yaql  # noqa: PLC0415 - the path is set by then

    options = {
        'yaql.limitIterators': limits['iterations'],
        'yaql.memoryQuota': limits['quota_bytes'],
        'yaql.convertSetsToLists': True,
        'yaql.convertTuplesToLists': True,
        'yaql.convertOutputData': True,
    }
    engine = yaql.YaqlFactory(allow_delegates=False).create(options)
    library = yaql.create_context()
    resource.setrlimit(resource.RLIMIT_AS, (limits['memory_bytes'], limits['memory_bytes']))
    stream = connection.makefile('rwb')
    stream.write(b'{"ready": true}\n')
    stream.flush()
    for line in stream:
        cpu_s, _, request = line.partition(b' ')
        random.seed(request)  # Equal requests get equal answers.
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, float(cpu_s))
        answer = _answer(engine, library, request)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        answer['cpu_s'] = time.process_time() - started
        stream.write(json.dumps(answer).encode() + b'\n')
        stream.flush()
        if answer.get('error') == 'memory':
            return  # The state of the process is unknown; a new process takes over.


def _answer(engine: Any, library: Any, line: bytes) -> dict[str, Any]:
    from yaql.language import exceptions  # noqa: PLC0415 - the path is set by then

    try:
        request = json.loads(line)
        context = library.create_child_context()
        context['$'] = {'data': request['data']}
        value = engine(request['expression']).evaluate(context=context)
        return {'value': json.loads(json.dumps(value, allow_nan=False))}
    except MemoryError:
        return {'error': 'memory'}
    # The text of an error may repeat secret data. Only safe parts are passed on.
    except exceptions.YaqlParsingException as error:
        where = 'its end' if error.position is None else f'position {error.position}'
        return _wrong(f'parse error at {where}')
    except exceptions.MethodResolutionError as error:
        return _wrong(str(error).partition(' for receiver ')[0])
    except exceptions.YaqlException as error:
        return _wrong(str(error) or type(error).__name__)
    except Exception as error:  # noqa: BLE001 - any error of an expression becomes an answer
        return _wrong(type(error).__name__)


def _wrong(text: str) -> dict[str, Any]:
    return {'error': 'expression', 'text': text[:500]}


if __name__ == '__main__':
    sys.path[:] = json.loads(sys.argv[1])
    with socket.socket(fileno=0) as peer:
        serve(peer, json.loads(sys.argv[2]))
