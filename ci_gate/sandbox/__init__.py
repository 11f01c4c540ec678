"""The world of a trial: its own copy of the fixture, and the faults that its tools meet."""
