"""Credentials with which a stack acts for its user after the request has ended.

The API creates them in Keystone, a trust or an application credential, with the user's own token, which it passes to no
other process (`convergence.api.user_credentials`). A row in the database (`convergence.db.repositories.credentials`)
exists before the credentials in Keystone and is deleted after them, and it contains the data that identify them. So a
crash of any process leaves no unknown credentials. A stack refers to the row by its id, and the core sees only that id
(`convergence.engine.callers.credentials`). Workers use the credentials (`convergence.worker.attempts.credentials`);
engines remove them when no stack needs them any more (`convergence.engine.sweeper.credentials`).
"""
