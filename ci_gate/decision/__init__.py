"""What two files and a policy mean for a change: ``compare`` gathers the facts, ``decide`` judges.

A pure function of its arguments: no clock, chance, disk or network, and the same bytes out for the
same facts in, whatever the order of the tasks. It knows neither how a run was made nor how a
verdict is shown.
"""
