"""How the agent under test is started, asked, watched and ended, whichever protocol it speaks.

Everything from the agent is hostile here. These modules know no store, no grader and no verdict;
they turn processes into ``Trajectory`` values.
"""
