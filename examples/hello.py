"""A first stack: create it, read its output, delete it. Meanwhile an engine and a worker run in this process."""

from pathlib import Path

from convergence import config
from convergence.cmd.embedded import Embedded

template = Path(__file__).with_name('hello.yaml').read_text(encoding='utf-8')

with Embedded(config.load([], process='hello')) as convergence:
    context = convergence.context('a-project')
    params = {'parameters': {'name': 'reader'}}
    stack = convergence.client.create_stack(context, 'hello', template, params=params)
    shown = convergence.wait(stack, timeout_s=60)
    print(shown['stack_action'], shown['stack_status'])
    for output in shown['outputs']:
        print(output['output_key'], '=', output['output_value'])
    convergence.client.delete_stack(context, stack)
    convergence.wait(stack, timeout_s=60)
