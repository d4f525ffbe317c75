"""What `make` runs: it prepares tools, builds once, starts databases, runs every check and adds the results up.

Python's standard library only, because it runs before anything is installed. One noun per module; `__main__`
is the command line, `catalogue` lists the steps.
"""

import sys

# Here, because the modules below use syntax that an older Python cannot even read.
if sys.version_info < (3, 10):  # noqa: UP036
    sys.exit("python3 is %d.%d: install Python 3.10 or newer" % sys.version_info[:2])  # noqa: UP031
