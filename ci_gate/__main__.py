"""``python -m ci_gate``."""

from ci_gate.cli import main

if __name__ == "__main__":
    main()
