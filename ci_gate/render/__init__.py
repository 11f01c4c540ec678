"""What people and machines read of a verdict: Markdown, JUnit, terminal.

``view`` decides everything that is shown, in plain strings; the writers only lay it out and escape
it for their format. Nothing here computes a statistic, decides, or touches disk, clock or network.
"""
