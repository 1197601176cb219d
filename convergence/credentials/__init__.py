"""Credentials with which a stack acts for its user after the request has ended.

The API creates them in Keystone with the user's own token, which it sends to Keystone only
(`convergence.api.user_credentials`): a trust, or an application credential. A row in the database
(`convergence.db.repositories.credentials`) is stored before the object in Keystone is created, identifies it, and is
deleted after it: so no credentials are lost when a process dies. Stacks refer to the row by its id, and the core knows
only that id (`convergence.engine.callers.credentials`). Workers use the credentials
(`convergence.worker.attempts.credentials`), engines delete them after their last use
(`convergence.engine.sweeper.credentials`).
"""
