"""A support desk that gives customers their money back, within the rules of the shop."""
