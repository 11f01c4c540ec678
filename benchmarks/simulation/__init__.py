"""What calibration.py is made of: simulated suites, rules, the tables and the plots."""
