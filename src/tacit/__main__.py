"""`python -m tacit` is the same as `tacit`."""

import sys

from tacit_command import main

if __name__ == "__main__":
    sys.exit(main())
