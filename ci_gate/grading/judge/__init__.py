"""The grader ``judge``: a model that says what code cannot decide."""
