"""Everything that is kept in files: task files, run files, baselines and their schemas.

The store decides what a file may say and how it is written so that it is never half there. It knows
neither git, nor who runs trials, nor how two sides are compared.
"""
