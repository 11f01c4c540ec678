"""What traces say: where two part, what a call could have touched, what they cost. Pure."""
