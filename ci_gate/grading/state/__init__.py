"""What a trial did to its world: read before and after, compared, held against checks."""
