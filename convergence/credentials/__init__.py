"""Credentials with which a stack acts for its user after the request is over: made, kept, used and removed.

The API makes them in Keystone with the user's own token, which goes nowhere else (`convergence.api.user_credentials`): a trust,
or an application credential. A row in the database (`convergence.db.repositories.credentials`) stands before the thing
in Keystone does, says how it can be recognized, and goes after it: so nothing is lost whoever dies. Stacks refer to the
row by its id, which is all that the core ever sees of it (`convergence.engine.callers.credentials`). Workers act
with it (`convergence.worker.attempts.credentials`), engines remove it when nothing needs it any more
(`convergence.engine.sweeper.credentials`).
"""
