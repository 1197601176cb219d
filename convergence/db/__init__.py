"""The memory of the engine: tables, and a store with one transaction per step. Sole user of SQLAlchemy and oslo.db."""
