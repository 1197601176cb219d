"""The pictures of the documentation: ``python -m tests.pictures`` redraws them in docs/pictures.

They are plain SVG, made here: GitHub and the site show it as it stands, light or dark, and nothing has to be installed
or fetched. What they show comes from the code (tables of states, what the simulator plays), so that a test can tell
whether they are still true.
"""
