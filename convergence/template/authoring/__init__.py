"""Tools for template authors: checks, lint rules, completion, documentation, layout and a JSON Schema.

The tools need no terminal. The command line and the language server call them. They know resource types only through
`convergence.template.authoring.types.TypeCatalog`.
"""
